// Package cli is the command line of the rdskit tools: options as getopt_long(3)
// takes them, values in the syntax of the C rds-tools, exit statuses, text and
// JSON output, signals.
//
// A command declares an [App] with its flags and hands it to [Run]. The flags
// are those of github.com/urfave/cli/v2, which parses them and binds their
// values; this package is the only one that imports it. Because urfave stops
// at the first operand, knows neither -c1 nor -Icn and takes a host called "h"
// for a help command, Run first rewrites the arguments into the one form that
// it reads without surprises, driven by the same flag declarations.
package cli

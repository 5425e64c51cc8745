package cli

import (
	"fmt"
	"strings"

	"github.com/rdskit/rdskit/internal/shell"
)

// zshCompletion returns a script for zsh, to be autoloaded as _NAME.
func zshCompletion(g *grammar) string {
	var b strings.Builder
	fmt.Fprintf(&b, "#compdef %s\n", g.name)
	b.WriteString(header(g, "zsh"))
	fmt.Fprintf(&b, "\n%s() {\n    local curcontext=$curcontext state line ret=1\n    typeset -A opt_args\n", g.functionName())
	if len(g.commands) == 0 {
		fmt.Fprintf(&b, "    _arguments -s -S%s && ret=0\n", zshArguments(g, "        "))
		fmt.Fprintf(&b, "    return ret\n}\n\n%s \"$@\"\n", g.functionName())
		return b.String()
	}
	fmt.Fprintf(&b, "    _arguments -s -S -C -A '-*'%s \\\n        '1:command:->command' \\\n        '*::argument:->argument' && ret=0\n", zshArguments(g, "        "))
	b.WriteString("    case $state in\n    command)\n        local -a commands=(\n")
	for _, c := range g.commands {
		fmt.Fprintf(&b, "            %s\n", shell.Quoted(strings.ReplaceAll(c.name, ":", `\:`)+":"+c.usage))
	}
	b.WriteString("        )\n        _describe command commands && ret=0 ;;\n    argument)\n        case $words[1] in\n")
	for _, c := range g.commands {
		stop := ""
		if c.operands == commandName {
			stop = " -A '-*'"
		}
		fmt.Fprintf(&b, "        %s)\n            _arguments -s -S%s%s && ret=0 ;;\n", c.name, stop, zshArguments(c, "                "))
	}
	fmt.Fprintf(&b, "        esac ;;\n    esac\n    return ret\n}\n\n%s \"$@\"\n", g.functionName())
	return b.String()
}

// zshArguments are the specifications of _arguments, each on a continued line.
func zshArguments(g *grammar, indent string) string {
	var specs []string
	for _, o := range g.options {
		usage := "[" + strings.NewReplacer(`\`, `\\`, "[", `\[`, "]", `\]`).Replace(o.usage) + "]"
		value := ""
		if o.placeholder != "" {
			value = ":" + strings.ReplaceAll(o.placeholder, ":", `\:`) + ":" + zshAction(o.kind, o.words)
		}
		for _, name := range o.names {
			exclusive := "(" + strings.Join(o.names, " ") + ")"
			spelled := name
			if value != "" {
				spelled += "+" // -cN or -c N
				if strings.HasPrefix(name, "--") {
					spelled = name + "="
				}
			}
			specs = append(specs, shell.Quoted(exclusive+spelled+usage+value))
		}
	}
	switch {
	case len(g.commands) > 0:
	case g.operands == commandName:
		specs = append(specs, shell.Quoted("*::command:_normal"))
	case g.operands != anyWord:
		specs = append(specs, shell.Quoted("*:operand:"+zshAction(g.operands, nil)))
	}
	return " \\\n" + indent + strings.Join(specs, " \\\n"+indent)
}

func zshAction(kind wordKind, words []string) string {
	switch {
	case len(words) > 0 && strings.HasSuffix(words[0], "="):
		return "{compadd -S '' " + strings.Join(words, " ") + "}"
	case len(words) > 0:
		return "(" + strings.Join(words, " ") + ")"
	case kind == fileName:
		return "_files"
	case kind == hostName:
		return "_hosts"
	case kind == netnsName:
		return "{compadd -- /run/netns/*(N:t)}"
	}
	return " "
}

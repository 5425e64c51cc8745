package cli

import (
	"fmt"
	"strings"
)

// fishCompletion returns a script for fish. What fish offers to find the command on the
// line takes the values of options for commands.
func fishCompletion(g *grammar) string {
	var b strings.Builder
	b.WriteString(header(g, "fish"))
	function := "_" + g.functionName() + "_command"
	if len(g.commands) > 0 {
		fmt.Fprintf(&b, `function %s
    set -l value
    for word in (commandline -opc)[2..-1]
        if set -q value[1]
            set -e value[1]
            continue
        end
        switch $word
            case %s
                set value yes
            case %s
                echo $word
                return
        end
    end
    echo none
end
`, function, strings.Join(g.optionNames(true), " "), strings.Join(g.commandNames(), " "))
	}
	fmt.Fprintf(&b, "complete -c %s -f\n", g.name)
	g.each(func(command string, of *grammar) {
		condition := ""
		if len(g.commands) > 0 {
			if command == "" {
				command = "none"
			}
			condition = " -n 'test (" + function + ") = " + command + "'"
		}
		for _, c := range of.commands {
			fmt.Fprintf(&b, "complete -c %s%s -a %s -d %s\n", g.name, condition, c.name, fishQuoted(c.usage))
		}
		if a := fishWords(of.operands, nil); a != "" {
			fmt.Fprintf(&b, "complete -c %s%s%s\n", g.name, condition, a)
		}
		for _, o := range of.options {
			fmt.Fprintf(&b, "complete -c %s%s", g.name, condition)
			for _, name := range o.names {
				if long, ok := strings.CutPrefix(name, "--"); ok {
					b.WriteString(" -l " + long)
				} else {
					b.WriteString(" -s " + name[1:])
				}
			}
			if o.placeholder != "" {
				// -x is -r without files, which -F would not bring back.
				take := " -x"
				if o.kind == fileName && len(o.words) == 0 {
					take = " -r"
				}
				b.WriteString(take + fishWords(o.kind, o.words))
			}
			fmt.Fprintf(&b, " -d %s\n", fishQuoted(o.usage))
		}
	})
	return b.String()
}

func fishWords(kind wordKind, words []string) string {
	switch {
	case len(words) > 0:
		return " -a " + fishQuoted(strings.Join(words, " "))
	case kind == fileName:
		return " -F"
	case kind == commandName:
		return " -a '(__fish_complete_command; __fish_complete_path (commandline -ct))'"
	case kind == hostName:
		return " -a '(__fish_print_hostnames)'"
	case kind == netnsName:
		return " -a '(path basename /run/netns/* 2>/dev/null)'"
	}
	return ""
}

// fishQuoted is a word in single quotes, in which fish takes backslashes.
func fishQuoted(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
}

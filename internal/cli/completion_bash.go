package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdskit/rdskit/internal/shell"
)

// bashCompletion returns a script for bash, which needs nothing of the package
// bash-completion. Bash takes "=" for a word of its own.
func bashCompletion(g *grammar) string {
	var b strings.Builder
	b.WriteString(header(g, "bash"))
	fmt.Fprintf(&b, `%s() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command= ended= operands=0 i
    COMPREPLY=()
    if [[ $cur == = ]]; then
        cur=
    elif [[ $prev == = ]]; then
        prev=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        case $command:${COMP_WORDS[i]} in
`, g.functionName())
	g.each(func(command string, g *grammar) {
		if names := g.optionNames(true); len(names) > 0 {
			fmt.Fprintf(&b, `        %s)
            [[ ${COMP_WORDS[i + 1]} == = ]] && ((i++))
            ((i++)) ;;
`, bashPatterns(command, names))
		}
	})
	if names := g.commandNames(); len(names) > 0 {
		fmt.Fprintf(&b, "        %s) command=${COMP_WORDS[i]} ;;\n", bashPatterns("", names))
	}
	b.WriteString(`        *:--) ended=yes prev= ;;
        *:-*) ;;
        *) ((operands++)) ;;
        esac
    done
    [[ $ended ]] && prev=
    case $command:$prev in
`)
	g.each(func(command string, g *grammar) {
		for _, o := range g.options {
			if o.placeholder != "" {
				fmt.Fprintf(&b, "    %s)\n%s        return ;;\n", bashPatterns(command, o.names), bashWords(o.kind, o.words, "        "))
			}
		}
	})
	b.WriteString("    esac\n    if [[ $cur == -* && ! $ended ]]; then\n        case $command in\n")
	g.each(func(command string, g *grammar) {
		fmt.Fprintf(&b, "        %s) mapfile -t COMPREPLY < <(compgen -W %s -- \"$cur\") ;;\n", shell.Quoted(command), shell.Quoted(strings.Join(g.optionNames(false), " ")))
	})
	b.WriteString("        esac\n        return\n    fi\n    case $command in\n")
	g.each(func(command string, g *grammar) {
		words := bashWords(g.operands, g.commandNames(), "        ")
		if g.operands == commandName {
			words = "        if ((operands)); then\n" + bashWords(fileName, nil, "            ") + "        else\n" + bashWords(commandName, nil, "            ") + "        fi\n"
		}
		if words != "" {
			fmt.Fprintf(&b, "    %s)\n%s        ;;\n", shell.Quoted(command), words)
		}
	})
	fmt.Fprintf(&b, "    esac\n}\ncomplete -F %s %s\n", g.functionName(), g.name)
	return b.String()
}

// bashPatterns matches "command:word" for each of the words.
func bashPatterns(command string, words []string) string {
	patterns := make([]string, len(words))
	for i, w := range words {
		patterns[i] = command + ":" + w
	}
	return strings.Join(patterns, " | ")
}

// bashWords fills COMPREPLY with what may stand there.
func bashWords(kind wordKind, words []string, indent string) string {
	generators := ""
	options := ""
	switch {
	case len(words) > 0:
		generators = "compgen -W " + shell.Quoted(strings.Join(words, " "))
		if slices.ContainsFunc(words, func(w string) bool { return strings.HasSuffix(w, "=") }) {
			options = "nospace"
		}
	case kind == fileName:
		generators, options = "compgen -f", "filenames"
	case kind == commandName:
		generators, options = `compgen -c -- "$cur"; compgen -f`, "filenames"
	case kind == hostName:
		generators = "compgen -A hostname"
	case kind == netnsName:
		generators = `compgen -W "$(ls /run/netns 2>/dev/null)"`
	default:
		return ""
	}
	lines := indent + "mapfile -t COMPREPLY < <(" + generators + ` -- "$cur")` + "\n"
	if options != "" {
		lines = indent + "compopt -o " + options + "\n" + lines
	}
	return lines
}

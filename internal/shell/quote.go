// Package shell writes commands for people to paste into a shell.
package shell

import "strings"

// plain are the characters that no shell takes for anything else.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:@%+=,-"

// Quote returns text as one word of a command, whatever is in it: names may come from elsewhere.
func Quote(text string) string {
	if text != "" && strings.Trim(text, plain) == "" {
		return text
	}
	return Quoted(text)
}

// Quoted returns text in single quotes, as POSIX shells and zsh take it.
func Quoted(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

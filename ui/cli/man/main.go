// Command man writes the manual pages into a directory, from the same text as
// uprobetop help.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"uprobetop/ui/cli"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: man DIRECTORY")
		os.Exit(2)
	}
	if err := write(cli.Command(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// write makes a page of a command and of each below it.
func write(cmd *cobra.Command, dir string) error {
	for _, sub := range cmd.Commands() {
		if err := write(sub, dir); err != nil {
			return err
		}
	}
	cmd.InitDefaultHelpFlag()
	cmd.InitDefaultVersionFlag()
	return os.WriteFile(filepath.Join(dir, pageName(cmd)+".1"), []byte(page(cmd)), 0o644)
}

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// page is a manual page in the macros of man(7). It has no date: the same command
// makes the same page.
func page(cmd *cobra.Command) string {
	var b strings.Builder
	name := pageName(cmd)
	fmt.Fprintf(&b, ".TH %s 1 \"\" uprobetop \"User Commands\"\n", strings.ToUpper(name))
	section(&b, "NAME", literal(name)+` \- `+literal(cmd.Short))
	section(&b, "SYNOPSIS", ".B "+literal(cmd.UseLine()))
	long := cmd.Long
	if long == "" {
		long = cmd.Short
	}
	section(&b, "DESCRIPTION", paragraphs(long))
	var commands []string
	for _, sub := range cmd.Commands() {
		commands = append(commands, entry(`\fB`+literal(sub.Name())+`\fP`, sub.Short))
	}
	section(&b, "COMMANDS", commands...)
	section(&b, "OPTIONS", options(cmd)...)
	var status []string
	for _, s := range cli.Statuses {
		status = append(status, entry(s.Code, s.Means))
	}
	section(&b, "EXIT STATUS", status...)
	if cmd.Example != "" {
		section(&b, "EXAMPLES", ".nf\n"+literal(cmd.Example)+"\n.fi")
	}
	section(&b, "SEE ALSO", seeAlso(cmd))
	return b.String()
}

// paragraphs keeps the lines of those that are indented.
func paragraphs(text string) string {
	all := strings.Split(text, "\n\n")
	for i, p := range all {
		all[i] = literal(p)
		if strings.HasPrefix(p, "  ") {
			all[i] = ".nf\n" + all[i] + "\n.fi"
		}
	}
	return strings.Join(all, "\n.PP\n")
}

func section(b *strings.Builder, head string, parts ...string) {
	if len(parts) > 0 {
		fmt.Fprintf(b, ".SH %s\n%s\n", head, strings.Join(parts, "\n"))
	}
}

// entry is a word, already in macros, and what it means.
func entry(word, means string) string { return ".TP\n" + word + "\n" + literal(means) }

// options is an entry a flag, those of all commands last.
func options(cmd *cobra.Command) (all []string) {
	add := func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		word := `\fB` + literal("--"+f.Name) + `\fP`
		if f.Shorthand != "" {
			word = `\fB` + literal("-"+f.Shorthand) + `\fP, ` + word
		}
		if value != "" {
			word += ` \fI` + literal(value) + `\fP`
		}
		if !slices.Contains([]string{"", "0", "0s", "false", "[]"}, f.DefValue) {
			usage += " (default " + f.DefValue + ")"
		}
		all = append(all, entry(word, usage))
	}
	cmd.NonInheritedFlags().VisitAll(add)
	cmd.InheritedFlags().VisitAll(add)
	return all
}

func seeAlso(cmd *cobra.Command) string {
	var pages []string
	for _, other := range append([]*cobra.Command{cmd.Root()}, cmd.Root().Commands()...) {
		if other != cmd {
			pages = append(pages, `\fB`+literal(pageName(other))+`\fP(1)`)
		}
	}
	return strings.Join(pages, ",\n")
}

// literal is text that troff prints as it stands.
func literal(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "…", `\[u2026]`, "\n.", "\n\\&.").Replace("\n" + text)
	return text[1:]
}

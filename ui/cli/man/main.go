// Command man writes the manual pages into a directory, from the same text as
// uprobetop help.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
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
	cmd.Long, cmd.Use = literal(cmd.Long), literal(cmd.Use)
	cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) { f.Usage = literal(f.Usage) })
	cmd.DisableAutoGenTag = true // it has the day's date
	var page bytes.Buffer
	if err := doc.GenMan(cmd, &doc.GenManHeader{Section: "1", Source: "uprobetop", Manual: "User Commands", Date: new(time.Time)}, &page); err != nil {
		return err
	}
	text := strings.Replace(page.String(), `"Jan 0001"`, `""`, 1)
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"
	return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)
}

// literal is text as Markdown, which the generator reads.
func literal(text string) string {
	return strings.NewReplacer("\\", `\\`, "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", `\<`, "`", "\\`").Replace(text)
}

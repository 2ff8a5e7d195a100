// Command uprobetop is top for user-space functions.
package main

import (
	"os"

	"uprobetop/ui/cli"
)

func main() {
	os.Exit(cli.Run(os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}

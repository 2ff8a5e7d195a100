// Calls work N times and says how often it did.
package main

import (
	"fmt"
	"os"
	"strconv"
)

var made int

// Without the check for stack that begins other functions, and begins them again.
//
//go:noinline
//go:nosplit
func work() { made++ }

type pair[T any] struct{ a, b T }

//go:noinline
func (p *pair[T]) swap() { p.a, p.b = p.b, p.a }

// inC calls C, where there is cgo.
var inC func(int) int

func main() {
	n := 1000
	if len(os.Args) > 1 {
		n, _ = strconv.Atoi(os.Args[1])
	}
	for range n {
		work()
	}
	p := &pair[string]{"a", "b"}
	p.swap()
	if inC != nil {
		n = inC(n)
	}
	fmt.Println(made)
}

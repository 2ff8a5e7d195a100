// Program stacks calls functions on stacks that have to grow, in many goroutines
// that preempt each other, and says how often it called each.
package main

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

var calls [9]atomic.Uint64

//go:noinline
func small(depth int) int {
	calls[0].Add(1)
	if depth == 0 {
		return 0
	}
	return small(depth-1) + 1
}

// its frame is above what the stack check need not look at
//
//go:noinline
func big(depth int, s string, f float64) (frame [200]byte) {
	calls[1].Add(1)
	if depth > 0 {
		below := big(depth-1, s, f)
		frame[0] = below[1]
	}
	return frame
}

//go:noinline
func huge(depth int) (frame [70000]byte) {
	calls[2].Add(1)
	if depth > 0 {
		below := huge(depth - 1)
		frame[0] = below[1]
	}
	return frame
}

type tree struct{ n int }

//go:noinline
func (t *tree) walk(depth int) {
	calls[3].Add(1)
	if depth > 0 {
		t.walk(depth - 1)
		t.n++
	}
}

//go:noinline
func sum[T int | float64](depth int, by T) T {
	calls[4].Add(1)
	if depth == 0 {
		return by
	}
	return sum(depth-1, by) + by
}

type list[T any] struct{ items []T }

//go:noinline
func (l *list[T]) push(item T) int {
	calls[8].Add(1)
	l.items = append(l.items, item)
	return len(l.items)
}

// leaf has no stack check.
//
//go:noinline
func leaf(n int) int { return n + 1 }

//go:noinline
func apply(f func(int) int, n int) int { return f(n) }

func main() {
	var all sync.WaitGroup
	for g := range 200 {
		all.Add(1)
		go func() {
			defer all.Done()
			small(50 + g)
			big(20+g%7, "", 1)
			(&tree{}).walk(40 + g)
			sum(30, g)
			sum(g, 0.5)
			(&list[string]{}).push("a")
			(&list[int]{}).push(g)
			calls[5].Add(1)
			leaf(g)
			calls[6].Add(1)
			apply(twice(), g)
			if g%20 == 0 {
				huge(3)
				runtime.GC()
			}
		}()
	}
	all.Wait()
	for i, name := range []string{"main.small", "main.big", "main.huge", "main.(*tree).walk", "main.sum", "main.leaf", "main.apply", "main.twice.func1", "main.(*list).push"} {
		fmt.Println(name, calls[i].Load())
	}
}

//go:noinline
func twice() func(int) int {
	by := 2
	return func(n int) int {
		calls[7].Add(1)
		return small(n%3) * by
	}
}

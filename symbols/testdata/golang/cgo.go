package main

// static __attribute__((noinline)) int only_in_c(int n) { return n * 7; }
import "C"

func init() {
	inC = func(n int) int { return int(C.only_in_c(C.int(n))) }
}

// Package symbols goes from a file or a process to functions and the file
// offsets at which a breakpoint for them belongs.
//
// It reads files that nobody vouches for, usually as root: every offset, size
// and count in a file is held against the file's size before it is used, a
// damaged file ends in an error of one sentence, and what comes out of a file
// reaches a terminal only through [Printable].
package symbols

import (
	"debug/elf"
	"io"
	"os"
	"sort"
	"sync/atomic"
)

// Addr is an ELF virtual address: what the symbol table says, before any
// relocation.
type Addr uint64

// Offset is a place in the file, in bytes: what the kernel wants for a uprobe.
type Offset uint64

// Symbol is one name of a function as it stands in a symbol table.
type Symbol struct {
	Name    string // raw bytes, without version: "pthread_cond_signal", "_ZN3foo3barEv"
	Version string // "GLIBC_2.3.2", or empty
	Default bool   // name@@version: what the name means when a program is linked today
}

// String is name, name@version or name@@version, fit for a terminal.
func (s Symbol) String() string {
	switch {
	case s.Version == "":
		return Printable(s.Name)
	case s.Default:
		return Printable(s.Name + "@@" + s.Version)
	}
	return Printable(s.Name + "@" + s.Version)
}

// old says that the name means another function when a program is linked today.
func (s Symbol) old() bool { return s.Version != "" && !s.Default }

// Function is one address in executable code with all of its names, or a name
// that stands for something else: its Place says which.
type Function struct {
	Symbol           // the best name: default versions and public names first
	Aliases []Symbol // the other names of the same address, best first
	Addr    Addr
	Offset  Offset
	Size    uint64 // bytes; 0 where the table does not say
	Into    uint64 // bytes: above 0 it is a point that far inside a function; see File.Inside
	Place   Place
	Chosen  bool // an IFUNC's implementation in use: the addresses of its public names are of the code that chose it
}

// Place is where the code of a function is. From NoCode on there is none at Offset.
type Place uint8

const (
	InFile   Place = iota // at Offset
	Resolver              // an IFUNC: at Offset is the code that chooses among variants, which it chose is not known
	NoCode                // outside what is loaded as executable code
	Imported              // in another file, of which this one has only the name
	InVDSO                // an IFUNC for which the kernel's own code was chosen, which is in no file
)

// Point is where a breakpoint goes.
type Point struct {
	Offset Offset
}

// File is an ELF file: an executable or a shared library. Its exported fields
// do not change after [Open]; its methods may be called from several
// goroutines, except Close.
type File struct {
	Path      string // as shown to people; print it through Printable
	Open      string // a path at which the kernel finds the same inode while the File is open: /proc/self/fd/N
	Dev, Ino  uint64 // of stat(2)
	BuildID   string // lower-case hex, or empty
	Machine   elf.Machine
	Class     elf.Class
	Go        bool       // made by the Go compiler: stacks move
	Unwinds   bool       // it uses the unwinder: an exception may leave its frames; the rule is in unwind.go
	Library   bool       // it is for other programs to load
	Stripped  bool       // its functions are those that it exports: the table of all was taken away
	Switches  bool       // it switches stacks, as coroutines do; the rule is in unwind.go
	Functions []Function // those with code in order of address; then those without, in order of name

	file  *os.File
	r     io.ReaderAt // file, or what a test puts in its place
	size  uint64      // of what r reads, in bytes
	names nameCache

	beginnings atomic.Pointer[[]byte] // of all functions; see ReadBeginnings
}

// code is the functions that have code in the file, in order of address.
func (f *File) code() []Function {
	return f.Functions[:sort.Search(len(f.Functions), func(i int) bool { return f.Functions[i].Place >= NoCode })]
}

// Points is where the breakpoints of a function go, at least one. Each of them is
// hit once a call.
func (f *File) Points(fn *Function) []Point { return []Point{{fn.Offset}} }

// Close lets the file go. Nothing can be attached through f.Open any more, and
// Code fails; the functions and their names stay.
func (f *File) Close() error {
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}

// Package symbols goes from a file or a process to functions and the file
// offsets at which a breakpoint for them belongs.
//
// A file is opened (open.go) and its tables read once (image.go, table.go, read.go);
// stripped ones get their names elsewhere (sources.go, twin.go, debuglink.go,
// minidebug.go, debuginfod.go, pclntab.go). What IFUNCs chose is learnt from processes
// (ifunc.go, slots.go, memory.go, witnesses.go), and imports lead to other files
// (imports.go, scope.go, loader.go). What a process has mapped and in memory is looked at
// in sight.go and mappers.go. People ask by name (lookup.go, glob.go, search.go,
// list.go, complete.go); names are demangled by demangle/ in names.go. Where a
// breakpoint may go is told by the code itself (inside.go, flow.go, gostack.go) and by
// the unwind table (frames.go, rows.go, called.go).
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
	"slices"
	"sort"
	"sync/atomic"

	"golang.org/x/sys/unix"
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
func (s Symbol) String() string { return Printable(s.Raw()) }

// Raw is the same with the bytes that the file has: not for a terminal.
func (s Symbol) Raw() string {
	switch {
	case s.Version == "":
		return s.Name
	case s.Default:
		return s.Name + "@@" + s.Version
	}
	return s.Name + "@" + s.Version
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
	Unnamed bool // no symbol is known of the code around it: its name is its address
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
	Marker                // a usdt probe, provider:name: places inside the code of functions, see File.Points
)

// Point is where a breakpoint goes.
type Point struct {
	Offset    Offset
	Again     bool   // one call may hit it more than once
	Semaphore Offset // of 16 bits in the file's data that are above 0 while somebody probes; 0: there are none
	Arguments string // of a usdt probe, as sys/sdt.h writes them, fit for a terminal: -4@%edi 8@%rax
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
	Stripped  bool       // its functions are those that it exports: the table of all was taken away, and nothing has it
	Source    string     // where the names come from: OwnTable, or what was found in its place; empty where only exports are known
	Notes     []string   // sentences: what was passed over in the search for names, and why; fit for a terminal
	Switches  bool       // it switches stacks, as coroutines do; the rule is in unwind.go
	Replaced  string     // Deleted or Overwritten since the process through which it was opened mapped it; or empty
	Untold    string     // why it is not known of all its IFUNCs which variant is in use: a clause, or empty
	Functions []Function // those with code in order of address; then those without, in order of name; then markers, likewise

	from    *Sources
	layered bool          // of an overlay, which shows the inodes of other file systems
	changed unix.Timespec // of the inode, which nobody can set

	file  *os.File
	r     io.ReaderAt // file, or what a test puts in its place
	size  uint64      // of what r reads, in bytes
	names nameCache
	wants importCache

	process  *Process  // whose file it is, or nil
	took     uint64    // bytes of names, of that one's budget
	indirect *indirect // nil if it has no IFUNC
	variants variantCache
	more     map[Addr][]Point // what further processes chose; see Also

	markers map[string]*marker // by name

	onceListed   listedOnce
	unwind       framesOnce
	instructions instructionCache

	beginnings atomic.Pointer[[]byte] // of all functions; see ReadBeginnings
}

// What can become of the path of a file that a process has mapped. The process goes on
// with the old file.
const (
	Deleted     = "deleted"
	Overwritten = "replaced" // another file is there
)

// Badge says what became of the file since it was mapped, as in "libc.so.6, deleted from
// disk since it was mapped"; it is empty if it is the one on disk.
func (f *File) Badge() string {
	switch f.Replaced {
	case Deleted:
		return "deleted from disk since it was mapped"
	case Overwritten:
		return "replaced on disk since it was mapped"
	}
	return ""
}

// Same tells whether two files are one inode to the kernel, with one set of
// breakpoints. Overlays, such as the containers of one image, each show it as of a
// device of their own; that its number is kept is so where all layers are on one file
// system.
func (f *File) Same(o *File) bool {
	return f.Ino == o.Ino && (f.Dev == o.Dev ||
		(f.layered || o.layered) && f.size == o.size && f.changed == o.changed && f.BuildID == o.BuildID)
}

// OwnTable is the Source of a file whose own table has all of its functions.
const OwnTable = "symbol table"

// code is the functions that have code in the file, in order of address.
func (f *File) code() []Function {
	return f.Functions[:sort.Search(len(f.Functions), func(i int) bool { return f.Functions[i].Place >= NoCode })]
}

// Points is where the breakpoints of a function go, at least one. A call hits one of
// them once, unless it says Again. Of a usdt probe there is one for each place that can
// be probed, which may be none, and the hits are the sum.
func (f *File) Points(fn *Function) []Point { return f.AppendPoints(nil, fn) }

// AppendPoints appends what Points returns.
func (f *File) AppendPoints(to []Point, fn *Function) []Point {
	if fn.Place == Marker {
		return append(to, f.pointsOf(fn)...)
	}
	at := Point{Offset: fn.Offset}
	if f.Go && fn.Into == 0 && fn.Place < NoCode && f.r != nil {
		at = f.goPoint(fn)
	}
	to = append(to, at)
	if fn.Place == InFile && len(f.more) > 0 {
		to = append(to, f.more[fn.Addr]...)
	}
	return to
}

// Begins tells whether a point of a function is the first instruction of it, or of a
// further variant of an IFUNC, and not one inside.
func (f *File) Begins(fn *Function, at Offset) bool {
	if fn.Into > 0 {
		return false
	}
	return at == fn.Offset || fn.Place == InFile && slices.ContainsFunc(f.more[fn.Addr], func(p Point) bool { return p.Offset == at })
}

// Close lets the file go. Nothing can be attached through f.Open any more, and
// Code fails; the functions and their names stay.
func (f *File) Close() error {
	if f.file == nil {
		return nil
	}
	if f.process != nil {
		f.process.budget.give(f.took)
		f.took = 0
	}
	return f.file.Close()
}

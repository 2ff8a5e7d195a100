// Package recording is the file that a run is kept in: what stands in it,
// writing it, and reading it back. It does not know what the samples mean.
//
// A file begins with a line that names the format and its version. The rest is
// one zstd stream of frames: a byte for the kind, the length as an unsigned
// varint, and so many bytes, which are JSON or, of a sample, the number of its
// stream and the bytes as the ring buffer had them. The first frame is the
// Header; a Tick ends what belongs to one snapshot. A reader passes kinds by
// that it does not know.
//
// Files come from anybody: every length and number is bounded before it is used.
package recording

import "time"

// magic is the first line. The version changes when older readers would
// misunderstand what follows: the layout of samples is a part of it.
const magic = "uprobetop recording 1\n"

// The kinds of frames.
const (
	kindHeader   = 'H'
	kindFile     = 'F'
	kindFunction = 'f'
	kindProbe    = 'P'
	kindSample   = 's'
	kindTick     = 'T'
)

// Limits of what a reader takes.
const (
	maxFrame  = 1 << 20  // bytes of one frame
	maxMeta   = 16 << 20 // bytes of all frames that say what is measured
	maxWindow = 8 << 20  // bytes that zstd may look back
)

// Header is what does not change in a recording.
type Header struct {
	Order    string    `json:"order"`           // byte order of numbers in samples: little or big
	Label    string    `json:"label"`           // of the target
	Kernel   string    `json:"kernel"`          // release
	Method   string    `json:"method"`          // how probes are attached
	InFlight string    `json:"inflight"`        // where calls in flight were kept; empty: in task storage
	CPUs     int       `json:"cpus"`            // online, at the start
	Online   []int     `json:"online"`          // their numbers, ascending
	Possible int       `json:"possible"`        // CPUs that may ever come online
	At       time.Time `json:"at"`              // when it began
	Filter   Filter    `json:"filter,omitzero"` // whose hits count
}

// Filter is probes.Filter.
type Filter struct {
	PIDs    []int    `json:"pids,omitempty"`
	TIDs    []int    `json:"tids,omitempty"`
	Cgroups []string `json:"cgroups,omitempty"`
	Follow  bool     `json:"follow,omitempty"`
}

// File is an ELF file with recorded functions. Its number is how many files came
// before it.
type File struct {
	Path     string `json:"path"`
	Dev      uint64 `json:"dev"`
	Ino      uint64 `json:"ino"`
	BuildID  string `json:"build_id,omitempty"`
	Machine  uint16 `json:"machine"`
	Class    uint8  `json:"class"`
	Go       bool   `json:"go,omitempty"`
	Unwinds  bool   `json:"unwinds,omitempty"`
	Library  bool   `json:"library,omitempty"`
	Switches bool   `json:"switches,omitempty"`
	Replaced string `json:"replaced,omitempty"` // as symbols.File
}

// Function is one that has, or had, a probe. Its number is how many functions
// came before it.
type Function struct {
	File   int    `json:"file"`  // number
	Names  []Name `json:"names"` // best first; bytes that are not UTF-8 are replaced
	Addr   uint64 `json:"addr"`
	Offset uint64 `json:"offset"`
	Size   uint64 `json:"size,omitempty"`
	Into   uint64 `json:"into,omitempty"` // bytes, of a point inside a function
	Place  uint8  `json:"place,omitempty"`

	Unnamed bool `json:"unnamed,omitempty"` // as symbols.Function, as is the next
	Chosen  bool `json:"chosen,omitempty"`

	Points     []uint64 `json:"points"`               // offsets in the file
	Arguments  []string `json:"arguments,omitempty"`  // of the points, likewise, of usdt probes
	Semaphores []uint64 `json:"semaphores,omitempty"` // of the points, likewise; 0: it has none
	Again      bool     `json:"again,omitempty"`      // one call may hit a point more than once
}

// Name is a name as it stands in a symbol table.
type Name struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	Default bool   `json:"default,omitempty"`
}

// Probe is one from the next tick on. It comes when it is new, and again when
// something of it changes.
type Probe struct {
	ID       uint64        `json:"id"`
	Cookie   uint64        `json:"cookie,omitempty"` // what samples call it; 0: there are none
	Kind     uint8         `json:"kind"`
	Function int           `json:"function"` // number
	State    uint8         `json:"state"`
	Note     string        `json:"note,omitempty"`
	Stood    bool          `json:"stood,omitempty"`     // it was attached
	Placed   time.Duration `json:"placed_ns,omitempty"` // when, as Tick.Elapsed
	Floor    Floor         `json:"floor,omitzero"`      // of its latencies; all but the class 0: not measured
	Halted   time.Duration `json:"halted_ns,omitempty"` // when it was stopped, likewise; 0: it was not
	Removed  bool          `json:"removed,omitempty"`   // it is listed no more
	Watched  bool          `json:"watched,omitempty"`   // it is counted by thread as well
	Since    time.Duration `json:"since_ns,omitempty"`  // since when, as Tick.Elapsed
}

// Floor is probes.Floor.
type Floor struct {
	Class uint8  `json:"class"`
	Min   uint64 `json:"min_ns"`
	P50   uint64 `json:"p50_ns"`
}

// Sample is a record that a BPF program wrote.
type Sample struct {
	Stream byte // what it is: Records, or what a later version adds
	Raw    []byte
}

// Records is the stream of the records of this version, each of which tells its kind.
const Records = 0

// Tick is the end of what belongs to one snapshot.
type Tick struct {
	At        time.Time     `json:"at"`
	Elapsed   time.Duration `json:"elapsed_ns"`
	Interval  time.Duration `json:"interval_ns"`
	Container bool          `json:"container,omitempty"`
	Gone      bool          `json:"gone,omitempty"`
	Final     bool          `json:"final,omitempty"`
	Placing   [2]int        `json:"placing,omitzero"` // done, of
	Leaving   [2]int        `json:"leaving,omitzero"`
}

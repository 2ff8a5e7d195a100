package probes

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"uprobetop/bpf"
	"uprobetop/symbols"
)

// Method is a way to attach probes; see Config.Attach.
type Method = bpf.Method

// The methods that there are.
const (
	UprobeMulti = bpf.UprobeMulti
	PerfEvent   = bpf.PerfEvent
)

// Store is where calls in flight are kept; see Config.InFlight.
type Store = bpf.Store

// The stores that there are. SessionStore keeps no frames: see Stats.NoFrames.
const (
	TaskStore    = bpf.TaskStore
	HashStore    = bpf.HashStore
	SessionStore = bpf.SessionStore
)

// Supported tells whether this process may probe on this kernel: nil, or an
// error that says what is missing. It is quick.
func Supported() error {
	_, err := choose("")
	return err
}

// choose finds how to attach: as it is asked for, or else by the best way that
// the kernel has. What it has is found by trying.
func choose(asked Method) (Method, error) {
	err := bpf.HaveUprobeMulti()
	switch {
	case asked == PerfEvent, asked == "" && errors.Is(err, ebpf.ErrNotSupported):
		return PerfEvent, loadError(bpf.HavePerfUprobes())
	case err != nil && errors.Is(err, ebpf.ErrNotSupported):
		return "", &sentence{"this kernel has no uprobe_multi links: Linux 6.6 or newer has them, and --attach perf needs none", err}
	}
	return UprobeMulti, loadError(err)
}

// chooseStore finds where calls in flight are kept, for probes that are attached by
// this method: as it is asked for, or else where every term of the ledger is known.
func chooseStore(asked Store, m Method) (Store, error) {
	if asked != SessionStore {
		return cmp.Or(asked, TaskStore), nil
	}
	err := bpf.HaveSession()
	switch {
	case errors.Is(err, ebpf.ErrNotSupported):
		return "", &sentence{"this kernel has no session cookies: Linux 6.13 or newer has them, and --inflight task needs none", err}
	case err == nil && m == PerfEvent:
		return "", errors.New("session cookies come with uprobe_multi links alone, not with perf events: leave out --inflight or --attach")
	}
	return SessionStore, loadError(err)
}

// New loads the programs. Nothing is probed yet.
func New(c Config) (*Collector, error) {
	if err := raiseOpenFiles(); err != nil {
		return nil, err
	}
	method, err := choose(c.Attach)
	if err != nil {
		return nil, err
	}
	if c.InFlight, err = chooseStore(c.InFlight, method); err != nil {
		return nil, err
	}
	if len(c.Filter.PIDs)+len(c.Filter.TIDs) > 0 && foreignProc() {
		return nil, errors.New("/proc shows process ids of another PID namespace than this one: " +
			"mount one of this namespace with mount -t proc proc /proc, or run uprobetop in the other")
	}
	if method == PerfEvent {
		return newCollector(c, method, perf{})
	}
	if c.Audit {
		return newCollector(c, method, multi{}) // the witness is everywhere, too
	}
	pids, err := kernelFilter(c.Filter)
	if err != nil {
		return nil, err
	}
	return newCollector(c, method, multi{pids: pids})
}

func newCollector(c Config, method Method, tier attacher) (*Collector, error) {
	possible, err := bpf.PossibleCPUs()
	if err != nil {
		return nil, err
	}
	o := bpf.DefaultOptions(possible)
	o.MaxProbes = max(cmp.Or(c.MaxProbes, o.MaxProbes), c.Probes)
	o.MaxTimed = max(cmp.Or(c.MaxTimed, o.MaxTimed), c.Timed)
	if most := bpf.MaxProbes(possible); o.MaxProbes > most {
		return nil, fmt.Errorf("there is no room for %d probes at once here, at most for %d: name fewer", o.MaxProbes, most)
	}
	if most := bpf.MaxTimed(possible); o.MaxTimed > most {
		return nil, fmt.Errorf("%d functions cannot be timed at once here, at most %d: name fewer, or count them without -r", c.Timed, most)
	}
	o.RingBytes = cmp.Or(c.RingBytes, o.RingBytes)
	o.CallBytes = cmp.Or(c.RingBytes, o.CallBytes)
	o.Stacks = cmp.Or(c.Stacks, o.Stacks)
	o.Method, o.Tick, o.OneClock, o.Object = method, tick(), oneClock(), c.Object
	o.Store = cmp.Or(c.InFlight, o.Store)
	o.Threads = cmp.Or(c.Threads, o.Threads)
	if o.PIDNamespace, err = pidNamespace(); err != nil {
		return nil, err
	}
	o.Filter = bpf.Filter{
		Processes: len(c.Filter.PIDs) > 0, Follow: c.Filter.Follow,
		Threads: len(c.Filter.TIDs) > 0, Cgroups: len(c.Filter.Cgroups),
	}
	objs, err := bpf.Load(o)
	if err != nil {
		return nil, loadError(err)
	}
	col := &Collector{
		objs: objs, tier: tier, host: ThisHost(), config: c, decoder: newDecoder(),
		slots: slots{n: o.MaxProbes}, timed: slots{n: o.MaxTimed}, timedAt: map[spot]*probe{}, floors: map[Class]Floor{},
		closers: make(chan struct{}, atOnce), away: make(chan struct{}), log: openKernelLog(), looking: surveyTime, surveying: make(chan struct{}, 1),
	}
	col.decoder.store = o.Store
	for _, m := range []*ebpf.Map{objs.Records, objs.Calls} {
		r, err := ringbuf.NewReader(m)
		if err != nil {
			return nil, errors.Join(loadError(fmt.Errorf("the ring buffer cannot be read: %w", err)), col.Close())
		}
		col.rings = append(col.rings, r)
	}
	if err := col.admit(c.Filter); err != nil {
		return nil, errors.Join(err, col.Close())
	}
	col.last = &Snapshot{At: time.Now(), Kernel: col.host.Kernel, CPUs: len(col.host.CPUs), Method: string(o.Method), InFlight: o.Store, Filter: c.Filter}
	col.latest.Store(col.last)
	if c.Tap != nil {
		c.Tap.Begin(col.last, col.host.CPUs, objs.CPUs)
	}
	return col, nil
}

// admit lets those through that the filter names.
func (c *Collector) admit(f Filter) error {
	for _, pid := range f.PIDs {
		if err := c.admitProcess(pid); err != nil {
			return err
		}
		if !f.Follow {
			continue
		}
		// What it starts from now on the hook on fork admits.
		if err := descendants(pid, c.admitProcess); err != nil {
			return err
		}
	}
	for _, tid := range f.TIDs {
		if err := c.objs.AdmitThread(tid); err != nil {
			return err
		}
	}
	for i, directory := range f.Cgroups {
		if err := c.objs.AdmitCgroup(i, directory); err != nil {
			return err
		}
	}
	return nil
}

// admitProcess lets a process through, unless it has ended: the hook on exit, which
// would take it off the list, may have run before it was on it. Who is seen to run
// after that has the hook still before it.
func (c *Collector) admitProcess(pid int) error {
	if err := c.objs.Admit(pid); err != nil || symbols.Runs(pid) {
		return err
	}
	return c.objs.Dismiss(pid)
}

// slow is the threshold of new probes, as Report takes it.
func (c *Config) slow() time.Duration { return cmp.Or(max(c.Slow, 0), NoCalls) }

// loadError says what a user can do about programs that do not load.
func loadError(err error) error {
	var rejected *ebpf.VerifierError
	switch {
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		return &sentence{"too many files are open: " + raiseFiles(0), err}
	case errors.As(err, &rejected):
		return &sentence{"the kernel's verifier rejects the programs: this is a fault of uprobetop, please report it with the output of -v", rejected}
	case err != nil && !exists("/sys/kernel/btf/vmlinux"):
		return &sentence{"this kernel has no BTF (/sys/kernel/btf/vmlinux): one built with CONFIG_DEBUG_INFO_BTF is needed", err}
	case errors.Is(err, os.ErrPermission):
		return &sentence{"probing needs root or CAP_BPF and CAP_PERFMON: run sudo uprobetop", err}
	case errors.Is(err, ebpf.ErrNotSupported):
		return &sentence{"this kernel has neither uprobe_multi links nor perf events for uprobes with cookies: Linux 5.15 or newer is needed", err}
	}
	return err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// sentence is an error as a user should read it; what the kernel said is its
// cause.
type sentence struct {
	text  string
	cause error
}

func (s *sentence) Error() string { return s.text }
func (s *sentence) Unwrap() error { return s.cause }

// kernelFilter are the processes that the kernel can be told to probe alone, so
// that nobody else pays for the breakpoints; none if it has to be all of them.
func kernelFilter(f Filter) ([]int, error) {
	if f.HostWide() || !bpf.ProcessFilter() {
		return nil, nil
	}
	pids := slices.Clone(f.PIDs)
	for _, tid := range f.TIDs {
		if th, err := symbols.OpenThread(tid); err == nil { // else it has ended
			pids = append(pids, th.Process.PID)
		}
	}
	if len(pids) == 0 {
		return nil, errors.New("whoever was to be probed has ended")
	}
	slices.Sort(pids)
	return slices.Compact(pids), nil
}

// HostWide tells whether breakpoints go into every process that maps a file, for
// this filter and way of attaching on this kernel.
func HostWide(f Filter, m Method) bool {
	m, err := choose(m)
	return f.HostWide() || err == nil && (m == PerfEvent || !bpf.ProcessFilter())
}

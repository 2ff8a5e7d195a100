package bpf

import (
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"
)

type (
	// Share is struct share: what one thread did of a watched probe.
	Share = uprobetopShare
	// ShareRecord is struct share_record: a Share as it travels.
	ShareRecord = uprobetopShareRecord
)

const (
	// RecordShare is of a ShareRecord.
	RecordShare = uint32(uprobetopRecordKindRECORD_SHARE)
	// Others is the process and thread of a Share that is of all who found no room.
	Others = uint32(uprobetopShareThreadOTHERS)
	// ShareBuckets is the number of buckets in a Share, and ShareWidth how many of
	// those of a Hist make one.
	ShareBuckets = int(uprobetopShareSizeSHARE_BUCKETS)
	ShareWidth   = int(uprobetopShareSizeSHARE_WIDTH)
)

// DefaultThreads is how many entries of threads there is room for, over all probes.
const DefaultThreads = 4096

// ShareKey is struct share_key: whose entry of which probe it is.
type ShareKey = uprobetopShareKey

// Thread names an entry of a probe.
type Thread struct{ TGID, TID uint32 }

// Watch makes room for the entries of a probe, which is to be switched on
// thereafter. There may be some already.
func (l *Objects) Watch(cookie uint64) error {
	err := l.objs.OtherShares.Update(shareKey(cookie, Thread{Others, Others}), Share{}, ebpf.UpdateNoExist)
	if err != nil && !errors.Is(err, ebpf.ErrKeyExist) {
		return fmt.Errorf("no room for the threads of probe %d: %w", cookie, err)
	}
	return nil
}

func shareKey(cookie uint64, t Thread) ShareKey {
	return ShareKey{Cookie: cookie, Tgid: t.TGID, Tid: t.TID}
}

// FlushShares writes the entries that changed into the ring buffer of records, for
// about budget of time or until the ring is full, and tells whether some are left.
// The runs of one tick have the same pass, which no tick had before; 0 is none.
func (l *Objects) FlushShares(pass uint64, budget time.Duration) (more bool, err error) {
	args := uprobetopShareArgs{Pass: pass, BudgetNs: uint64(budget)}
	if _, err := l.objs.FlushShares.Run(&ebpf.RunOptions{Context: args, ContextOut: &args}); err != nil {
		return false, fmt.Errorf("the kernel does not run the flush of threads: %w", err)
	}
	return args.More != 0, nil
}

// Unwatch takes the entries of these threads of a probe away, and that of the
// others. No program may be using them.
func (l *Objects) Unwatch(cookie uint64, threads []Thread) error {
	var errs []error
	for _, t := range threads {
		errs = append(errs, gone(l.objs.Shares.Delete(shareKey(cookie, t))))
	}
	errs = append(errs, gone(l.objs.OtherShares.Delete(shareKey(cookie, Thread{Others, Others}))))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("cannot take the threads of probe %d away: %w", cookie, err)
	}
	return nil
}

func gone(err error) error {
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return nil
	}
	return err
}

// Quiesce waits until no program runs that ran when it was called. The kernel does
// that for whoever changes a map of maps (maybe_wait_bpf_programs, Linux 4.20).
func (l *Objects) Quiesce() error {
	inner := &ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1}
	outer, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.ArrayOfMaps, KeySize: 4, ValueSize: 4, MaxEntries: 1, InnerMap: inner})
	if err != nil {
		return fmt.Errorf("cannot wait for programs to end: %w", err)
	}
	defer outer.Close()
	m, err := ebpf.NewMap(inner)
	if err != nil {
		return fmt.Errorf("cannot wait for programs to end: %w", err)
	}
	defer m.Close()
	if err := outer.Put(uint32(0), m); err != nil {
		return fmt.Errorf("cannot wait for programs to end: %w", err)
	}
	return nil
}

package bpf

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

type (
	// Share is struct share: what one thread did of a watched probe.
	Share = uprobetopShare
	// ShareHead is struct share_head: with a Share behind it, a record of RecordShare.
	ShareHead = uprobetopShareHead
)

const (
	// RecordShare is of a ShareHead and a Share.
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

// Thread names an entry of a probe.
type Thread struct{ TGID, TID uint32 }

// Watch makes room for the entries of a probe, which is to be switched on
// thereafter. There may be some already.
func (l *Objects) Watch(cookie uint64) error {
	if err := l.openShares(); err != nil {
		return fmt.Errorf("this kernel does not tell threads apart: %w", err)
	}
	err := l.objs.OtherShares.Update(shareKey(cookie, Thread{Others, Others}), uprobetopShare{}, ebpf.UpdateNoExist)
	if err != nil && !errors.Is(err, ebpf.ErrKeyExist) {
		return fmt.Errorf("no room for the threads of probe %d: %w", cookie, err)
	}
	return nil
}

func shareKey(cookie uint64, t Thread) uprobetopShareKey {
	return uprobetopShareKey{Cookie: cookie, Tgid: t.TGID, Tid: t.TID}
}

// openShares attaches the program that writes entries to the iterators of their maps.
func (l *Objects) openShares() error {
	if len(l.shares) > 0 {
		return nil
	}
	var its []*link.Iter
	for _, m := range []*ebpf.Map{l.objs.Shares, l.objs.OtherShares} {
		it, err := link.AttachIter(link.IterOptions{Program: l.objs.SendShares, Map: m})
		if err != nil {
			return errors.Join(err, closeAll(its))
		}
		its = append(its, it)
	}
	l.shares = its
	return nil
}

func closeAll(its []*link.Iter) error {
	var errs []error
	for _, it := range its {
		errs = append(errs, it.Close())
	}
	return errors.Join(errs...)
}

// Shares gives each entry that changed since it was last given to use, as a record,
// which is overwritten after the call. One read takes what fits into the kernel's
// buffer of 8 pages.
func (l *Objects) Shares(use func(raw []byte) error) error {
	buffer := bufio.NewReaderSize(nil, 8*os.Getpagesize())
	for _, it := range l.shares {
		f, err := it.Open()
		if err != nil {
			return fmt.Errorf("the entries of threads cannot be read: %w", err)
		}
		buffer.Reset(f)
		err = readShares(buffer, use)
		if err = errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("the entries of threads cannot be read: %w", err)
		}
	}
	return nil
}

func readShares(f io.Reader, use func(raw []byte) error) error {
	record := make([]byte, unsafe.Sizeof(ShareHead{})+unsafe.Sizeof(Share{}))
	for {
		_, err := io.ReadFull(f, record)
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = use(record)
		}
		if err != nil {
			return err
		}
	}
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

// Entries is how many entries of threads there are.
func (l *Objects) Entries() int {
	var key uprobetopShareKey
	var s uprobetopShare
	n := 0
	for all := l.objs.Shares.Iterate(); all.Next(&key, &s); {
		n++
	}
	return n
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

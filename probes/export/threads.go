package export

import (
	"uprobetop/probes"
	"uprobetop/probes/hist"
)

// By is whose rows the object of a watched probe has: none, threads', processes'.
type By string

// The values of By, as the command line has them.
const (
	ByNobody  By = ""
	ByThread  By = "thread"
	ByProcess By = "process"
)

// shares is what threads or processes did of a watched probe: `others` are those
// that found no room for a row.
type shares struct {
	Since     *float64  `json:"watched_since_s,omitempty"` // as elapsed_s
	Threads   []thread  `json:"threads,omitempty"`
	Processes []process `json:"processes,omitempty"`
	Others    *share    `json:"others,omitempty"`
}

// Who did it is null for the row of all that are outside of this PID namespace.
type thread struct {
	PID  *int    `json:"pid"`
	TID  *int    `json:"tid"`
	Comm *string `json:"comm"`
	share
}

type process struct {
	PID     *int    `json:"pid"`
	Comm    *string `json:"comm"`
	Threads *int    `json:"threads"` // how many
	share
}

type share struct {
	Hits     uint64         `json:"hits"`
	Rate     float64        `json:"rate"`
	Returned *uint64        `json:"returned"`
	Latency  *coarseLatency `json:"latency_ns"`
}

// A quantile of a coarse histogram is known to lie between two values, both of which
// it can be.
type coarseLatency struct {
	Count   uint64      `json:"count"`
	Sum     uint64      `json:"sum"`
	Mean    *float64    `json:"mean"`
	P50     *[2]uint64  `json:"p50_between"`
	P99     *[2]uint64  `json:"p99_between"`
	Max     *uint64     `json:"max"`
	Buckets [][3]uint64 `json:"buckets"`
}

func sharesObject(s *probes.Snapshot, st *probes.Stats, by By) (o shares) {
	th := st.Threads
	if th == nil || by == ByNobody {
		return o
	}
	since, over := th.Since.Seconds(), th.Counted.Seconds()
	object := func(r *probes.ThreadShare) share {
		out := share{Hits: r.Hits, Rate: r.Rate}
		if s.Final {
			out.Rate = ratio(float64(r.Hits), over)
		}
		if st.Latency != nil {
			out.Returned, out.Latency = &r.Returned, coarseObject(r)
		}
		return out
	}
	others := object(&th.Others)
	o.Since, o.Others = &since, &others
	if by == ByThread {
		for i := range th.Rows {
			r, row := &th.Rows[i], thread{share: object(&th.Rows[i])}
			if !r.Outside() {
				row.PID, row.TID, row.Comm = &r.PID, &r.TID, &r.Comm
			}
			o.Threads = append(o.Threads, row)
		}
		return o
	}
	rows := probes.ByProcess(th.Rows)
	for i := range rows {
		r, row := &rows[i], process{share: object(&rows[i])}
		if !r.Outside() {
			row.PID, row.Comm, row.Threads = &r.PID, &r.Comm, &r.Threads
		}
		o.Processes = append(o.Processes, row)
	}
	return o
}

func coarseObject(r *probes.ThreadShare) *coarseLatency {
	l := &coarseLatency{Count: r.Latency.Count(), Sum: r.Sum, Buckets: [][3]uint64{}}
	for _, b := range r.Latency {
		low, high := hist.CoarseBounds(b.Index)
		l.Buckets = append(l.Buckets, [3]uint64{low, high, b.Count})
	}
	if l.Count == 0 {
		return l
	}
	between := func(q float64) *[2]uint64 {
		low, high := r.Latency.Quantile(q, r.Max)
		return &[2]uint64{low, high}
	}
	mean := ratio(float64(r.Sum), float64(l.Count))
	l.Mean, l.Max, l.P50, l.P99 = &mean, &r.Max, between(0.5), between(0.99)
	return l
}

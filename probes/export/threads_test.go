package export

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"uprobetop/probes"
	"uprobetop/probes/hist"
)

func watched() *probes.Snapshot {
	s := snapshot()
	at := func(ns uint64) int { return hist.Index(ns) / hist.CoarseWidth }
	row := func(tid int, hits uint64, calls hist.Coarse) probes.ThreadShare {
		return probes.ThreadShare{
			PID: 7, TID: tid, Threads: 1, Comm: "w\x1b[1m", Hits: hits, Rate: 4, Returned: calls.Count(),
			Sum: 90 * calls.Count(), Max: 90 * min(calls.Count(), 1), Latency: calls,
		}
	}
	s.Probes[0].Threads = &probes.Threads{Since: 1500 * time.Millisecond, Counted: 500 * time.Millisecond, Rows: []probes.ThreadShare{
		row(9, 3, hist.Coarse{{Index: at(90), Count: 1}}), row(8, 1, hist.Coarse{{Index: at(70), Count: 1}}),
	}}
	s.Probes[0].Threads.Others.Hits = 1
	return s
}

// Rows have what is known of them, and nothing that is not.
func TestJSONBy(t *testing.T) {
	const nothing = `"others":{"hits":1,"rate":0,"returned":0,"latency_ns":{"count":0,"sum":0,"mean":null,"p50_between":null,"p99_between":null,"max":null,"buckets":[]}}}`
	for by, want := range map[By]string{
		ByThread: `"cost":null,"why":null,"audit":null,"watched_since_s":1.5,"threads":[{"pid":7,"tid":9,"comm":"w\u001b[1m","hits":3,"rate":4,"returned":1,` +
			`"latency_ns":{"count":1,"sum":90,"mean":90,"p50_between":[80,90],"p99_between":[80,90],"max":90,"buckets":[[80,96,1]]}},` +
			`{"pid":7,"tid":8,"comm":"w\u001b[1m","hits":1,"rate":4,"returned":1,"latency_ns":{"count":1,"sum":90,"mean":90,` +
			`"p50_between":[64,79],"p99_between":[64,79],"max":90,"buckets":[[64,80,1]]}}],` + nothing,
		ByProcess: `"watched_since_s":1.5,"processes":[{"pid":7,"comm":"w\u001b[1m","threads":2,"hits":4,"rate":8,"returned":2,"latency_ns":` +
			`{"count":2,"sum":180,"mean":90,"p50_between":[64,79],"p99_between":[80,90],"max":90,"buckets":[[64,80,1],[80,96,1]]}}],` + nothing,
		ByNobody: `"cost":null,"why":null,"audit":null}`,
	} {
		var b bytes.Buffer
		if err := JSONWith(&b, watched(), Extra{By: by}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), want) {
			t.Errorf("by %q it does not say\n%s but\n%s", by, want, b.String())
		}
	}
}

// In the end a rate is over the time for which hits counted, also of a probe that was
// stopped before.
func TestJSONByFinalRates(t *testing.T) {
	s := watched()
	s.Final = true
	o := sharesObject(s, &s.Probes[0], ByThread)
	if o.Threads[0].Rate != 6 || o.Threads[1].Rate != 2 || o.Others.Rate != 2 {
		t.Errorf("%v and %v hits/s, of others %v", o.Threads[0].Rate, o.Threads[1].Rate, o.Others.Rate)
	}
}

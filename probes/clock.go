package probes

import (
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// monotonic is CLOCK_MONOTONIC in ns: the clock that stamps the kernel's records. It
// stands still while the host is suspended, as all that is probed does, and nobody
// sets it. Every duration here is a difference of two of its readings.
func monotonic() uint64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // it is always there
	return uint64(t.Nano())
}

// between is the time from one reading to a later one; 0 if that is not later.
func between(from, to uint64) time.Duration {
	if to < from {
		return 0
	}
	return time.Duration(to - from)
}

// wallAt is what a wall clock showed at a reading of a moment ago, as it is set now:
// a label, and nothing to subtract.
func wallAt(at uint64) time.Time {
	return time.Now().Round(0).Add(-between(at, monotonic()))
}

// oneClock tells whether the scheduler goes by the clock that stamps our records: both
// are made of one counter of the CPUs, or of the hypervisor. Elsewhere (hpet, acpi_pm)
// it is because the kernel found the CPUs' counters apart. What its clock shows is then
// an estimate, which is put right at ticks (kernel/sched/clock.c).
func oneClock() bool {
	source, _ := os.ReadFile("/sys/devices/system/clocksource/clocksource0/current_clocksource")
	return schedulers(strings.TrimSpace(string(source)))
}

// schedulers tells whether a clocksource is what the scheduler's clock is made of, too.
func schedulers(source string) bool {
	return slices.Contains([]string{"tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"}, source)
}

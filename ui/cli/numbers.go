package cli

import "github.com/spf13/cobra"

// newNumbers is a topic of help, no command: what can make a number wrong, and where
// it is told. Who adds a way to lose a hit, or closes one, changes it here.
func newNumbers() *cobra.Command {
	return &cobra.Command{
		Use:   "numbers",
		Short: "what the numbers mean, and all that can be missing from them",
		Long: `For each timed function the books balance,

  hits = returned + in flight + unwound + missed.depth + missed.no_slot,

and each term is counted where it happens, none as what the others leave. A term that
the in-flight store cannot know (--inflight) is null, and – in tables.

Counted, as a term or beside it:

  missed.depth    the kernel keeps 64 pending returns a thread, of all tracers together;
                  the hit is counted, its return and latency are not
  missed.no_slot  there was no memory, or no room in the store, to follow the call
  unwound         the return can never come: a longjmp passed the call, or its thread
                  ended or called exec in it; a longjmp is noticed at the thread's next hit
  unreturned      in flight, unwound and missed.no_slot together: all that session cookies
                  tell, with which hits = returned + unreturned + missed.depth
  orphans         returns whose hit was not seen: the call began before the probe, or is
                  a forked child's copy of one
  filtered        hits of processes that were not asked for
  unfollowed      children that found no room in the filter, as more than 16,384 processes
                  ran at once: their hits are missing, and the verdict is not exact
  others          with --by, threads that found no room for a row: the probe's numbers have
                  their hits, and no row has
  held back       slow calls that the rate limit did not let be reported one by one
  lost            those that found the ring buffer full, or locked; records of counters
                  that found it full are sent again, and change no number

Prevented:

  lost additions  counters are added to atomically: a thread that is preempted in the
                  middle loses nothing
  recursion       from Linux 6.0 on, no program of another probe keeps ours from running;
                  before, the kernel skips such a hit and counts that it did: stat then
                  says not exact, and the screen does not know
  wrong pairing   return and entry are paired by thread and stack pointer, by the rule by
                  which the kernel pairs them; a child's return after fork is no latency
  full store      nothing in it is ever replaced by something newer
  twice counted   of Go functions, which begin again when their stack grows, the
                  instruction behind the check is probed
  wrong file      the probe goes on the very file that a process has mapped, also if it
                  is deleted or replaced since
  wrong results   instructions that the kernel would not execute rightly are refused

Found out, and told:

  no breakpoint   the kernel puts none into mappings that are shared, writable, or not of
                  the file: where nothing is hit, the mappings and the bytes of the
                  processes are looked at (stat -v, and w on the screen)
  another count   --audit has the kernel count the same points a second time, without us
  the probe       a latency holds what the probe itself takes: that of an empty function is
                  measured beside it
  signals         a process that the kernel ends at a return (SIGILL) is in its log, which
                  stat -v reads, as are messages of returns that were left out; not in a
                  container, whose process ids the log does not have
  two calls, one  a function that can come back to its first instruction: the totals of the
                  screen have a ?, and stat says it
  outside         in a container, calls in flight of threads that are not in it are counted
                  and cannot be listed: in_flight_calls is null

Not to be known, by anybody:

  the edges       a thread that is past the breakpoint when it is placed, or before it when
                  it is taken away, is not counted; a call that is inside when its probe
                  is stopped returns unseen, and stays in flight
  restarts        an instruction that is interrupted by a page fault with a signal, or finds
                  no slot to be stepped in, is hit again at its restart
  no memory       where the kernel had none to note a return it says so to nobody: the call
                  reads as in flight, and then as unwound
  inlined calls   a call that the compiler put into its caller reaches no address`,
	}
}

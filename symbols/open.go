package symbols

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Open reads the headers, notes and symbol tables of an ELF executable or
// shared library. The file stays open until Close. An error is one sentence
// that names the path.
func Open(path string) (*File, error) { return OpenAs(path, path) }

// OpenAs is Open for a file that people know by another path than the one at
// which it can be opened, such as a file of another mount namespace.
func OpenAs(shown, path string) (*File, error) { return (*Sources)(nil).OpenAs(shown, path) }

// OpenAs is the function OpenAs with these sources.
func (s *Sources) OpenAs(shown, path string) (*File, error) { return s.openOf(nil, shown, path) }

// openOf is OpenAs for a file of a process, or of none.
func (s *Sources) openOf(p *Process, shown, path string) (*File, error) {
	file, st, err := openRegular(path)
	if err != nil {
		return nil, fmt.Errorf("%s %w", Printable(shown), err)
	}
	f := &File{
		Path: shown,
		Open: "/proc/self/fd/" + strconv.Itoa(int(file.Fd())),
		Dev:  st.Dev,
		Ino:  st.Ino,
		from: s,
		file: file,
		r:    file,
		size: uint64(st.Size),

		changed: st.Ctim,
		process: p,
	}
	var fs unix.Statfs_t
	f.layered = unix.Fstatfs(int(file.Fd()), &fs) == nil && fs.Type == unix.OVERLAYFS_SUPER_MAGIC
	if err := f.read(); err != nil {
		file.Close()
		return nil, fmt.Errorf("%s %w", Printable(shown), err)
	}
	return f, nil
}

// openRegular opens a file for reading only once it is known to be a regular
// one. O_PATH looks at an inode without touching it: the open of a FIFO would
// wait for a writer, and that of a device such as a watchdog does something.
// The second open goes through the first one's descriptor, so that both are of
// the same inode.
func openRegular(path string) (*os.File, *unix.Stat_t, error) {
	fd, err := openRetry(path, unix.O_PATH|unix.O_CLOEXEC)
	if err != nil {
		return nil, nil, cannotOpen(err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, nil, cannotOpen(err)
	}
	if what := kindOfFile(st.Mode); what != "" {
		return nil, nil, fmt.Errorf("is %s, not an ELF file; name an executable or a shared library", what)
	}
	if st.Size == 0 {
		return nil, nil, errors.New("is empty, not an ELF file; name an executable or a shared library")
	}
	file, err := os.Open("/proc/self/fd/" + strconv.Itoa(fd))
	if err != nil {
		return nil, nil, cannotOpen(err)
	}
	return file, &st, nil
}

func openRetry(path string, flags int) (int, error) {
	for {
		fd, err := unix.Open(path, flags, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// kindOfFile names what is not a regular file, and is empty for one that is.
func kindOfFile(mode uint32) string {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return ""
	case unix.S_IFDIR:
		return "a directory"
	case unix.S_IFIFO:
		return "a pipe"
	case unix.S_IFSOCK:
		return "a socket"
	case unix.S_IFCHR, unix.S_IFBLK:
		return "a device"
	}
	return "no regular file"
}

func cannotOpen(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR):
		return sentence{"does not exist; check the path", err}
	case errors.Is(err, fs.ErrPermission):
		return sentence{"may not be read by this user; run as root", err}
	case errors.Is(err, unix.ELOOP):
		return sentence{"leads through too many symbolic links; check the path", err}
	}
	return fmt.Errorf("cannot be opened: %w", cause(err))
}

// cause takes the paths out of a file error: the sentence around it names the
// one that the user knows.
func cause(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it became shorter while it was read; try again")
	}
	return err
}

// sentence is an error whose text is for people and whose cause is for
// errors.Is.
type sentence struct {
	text  string
	cause error
}

func (s sentence) Error() string { return s.text }
func (s sentence) Unwrap() error { return s.cause }

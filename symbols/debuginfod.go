package symbols

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Bounds on what a server may make us wait for and store.
const (
	maxPatience = 10 * time.Second // for a connection, for an answer to begin, for more of it
	maxFetched  = 8 << 30          // bytes; the largest known debug files have some 5 GB
	minRate     = 16 << 10         // bytes a second on average; less is not fetched
)

// Debuginfod asks servers for the debug files of builds, and keeps what they send
// where the client of elfutils keeps it (debuginfod-find(1)). Nothing else of this
// package uses the network.
type Debuginfod struct {
	Say func(text string) // told what is fetched, since it can take a while; may be nil

	servers  []string
	cache    string // a directory
	client   *http.Client
	patience time.Duration
	most     int64 // bytes

	mu   sync.Mutex
	dead map[string]error // servers that did not answer: they are not asked again
}

// NewDebuginfod finds the servers and the cache in the environment. An error is one
// sentence: there is no server.
func NewDebuginfod(getenv func(string) string) (*Debuginfod, error) {
	d := &Debuginfod{patience: maxPatience, most: maxFetched, dead: map[string]error{}}
	for _, s := range strings.Fields(getenv("DEBUGINFOD_URLS")) {
		if u, err := url.Parse(s); err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" {
			d.servers = append(d.servers, strings.TrimRight(s, "/"))
		}
	}
	if len(d.servers) == 0 {
		return nil, errors.New("--debuginfod asks the servers in DEBUGINFOD_URLS, which names none: set it to one, such as https://debuginfod.elfutils.org")
	}
	switch {
	case getenv("DEBUGINFOD_CACHE_PATH") != "":
		d.cache = getenv("DEBUGINFOD_CACHE_PATH")
	case getenv("XDG_CACHE_HOME") != "":
		d.cache = filepath.Join(getenv("XDG_CACHE_HOME"), "debuginfod_client")
	case getenv("HOME") != "":
		d.cache = filepath.Join(getenv("HOME"), ".cache", "debuginfod_client")
	default:
		return nil, errors.New("--debuginfod has no place for what it fetches: set DEBUGINFOD_CACHE_PATH to a directory")
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext = (&net.Dialer{Timeout: d.patience}).DialContext
	transport.TLSHandshakeTimeout, transport.ResponseHeaderTimeout = d.patience, d.patience
	d.client = &http.Client{Transport: transport}
	return d, nil
}

// debugFile is the name of a debug file in the cache, below a directory of its build.
const debugFile = "debuginfo"

// find is the debug file of a build: from the cache, else from the first server that
// has it. The path is of the file whose names are wanted.
func (d *Debuginfod) find(id, path string) (*Twin, error) {
	cached := filepath.Join(d.cache, id, debugFile)
	if t, err := openTwin(cached); err == nil {
		if t.of(id) == nil {
			return t, nil
		}
		t.Close()
	}
	var errs []string
	for _, server := range d.servers {
		err := d.fromServer(server, id, path)
		if err == nil {
			return openTwin(cached)
		}
		errs = append(errs, fmt.Sprintf("%s %s", server, err))
	}
	return nil, errors.New(strings.Join(errs, ", "))
}

func (d *Debuginfod) fromServer(server, id, path string) error {
	d.mu.Lock()
	err := d.dead[server]
	d.mu.Unlock()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/buildid/"+id+"/debuginfo", nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", "uprobetop")
	waiting := time.AfterFunc(d.patience, cancel)
	defer waiting.Stop()
	answer, err := d.client.Do(req)
	if err != nil {
		err = d.silent(err)
		d.mu.Lock()
		d.dead[server] = err
		d.mu.Unlock()
		return err
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return errors.New("does not have it")
	default:
		return fmt.Errorf("answers %q", answer.Status)
	}
	if answer.ContentLength > d.most {
		return fmt.Errorf("would send %d MB, more than is fetched", answer.ContentLength>>20)
	}
	if d.Say != nil {
		d.Say(fmt.Sprintf("fetching the names of %s from %s", Printable(path), Printable(server)))
	}
	err = d.keep(id, &patient{Reader: answer.Body, came: func() { waiting.Reset(d.patience) }, from: time.Now(), free: d.patience})
	return d.silent(err)
}

// silent says in words that a server let us wait.
func (d *Debuginfod) silent(err error) error {
	var timeout net.Error
	var at *url.Error
	switch {
	case errors.Is(err, context.Canceled), errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("does not answer within %s", d.patience)
	case errors.As(err, &at):
		return fmt.Errorf("cannot be asked: %w", at.Err)
	}
	return err
}

// patient tells of each piece that is read, and ends with an error if they are too few.
type patient struct {
	io.Reader
	came func()
	from time.Time
	free time.Duration // from then on, in which the rate does not matter
	sum  uint64        // bytes
}

func (p *patient) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	p.came()
	p.sum += uint64(n)
	if took := time.Since(p.from); err == nil && took > p.free && float64(p.sum) < took.Seconds()*minRate {
		return n, fmt.Errorf("sends less than %d KB a second", minRate>>10)
	}
	return n, err
}

// sweep removes what was begun a day ago or earlier, by somebody who was ended.
func sweep(root *os.Root, dir string) {
	const old = 24 * time.Hour
	entries, err := fs.ReadDir(root.FS(), dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if st, err := e.Info(); err == nil && strings.HasPrefix(e.Name(), debugFile+".") && time.Since(st.ModTime()) > old {
			_ = root.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// keep writes a debug file into the cache: under a name of its own, and under its
// right one only when all of it is there and is of the build that was asked for.
// os.Root keeps it below the cache, wherever links there lead.
func (d *Debuginfod) keep(id string, from io.Reader) (err error) {
	if err := os.MkdirAll(d.cache, 0o700); err != nil {
		return fmt.Errorf("cannot be kept in the cache: %w", err)
	}
	root, err := os.OpenRoot(d.cache)
	if err != nil {
		return fmt.Errorf("cannot be kept in the cache: %w", err)
	}
	defer root.Close()
	if err := root.Mkdir(id, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("cannot be kept in the cache: %w", err)
	}
	sweep(root, id)
	begun := filepath.Join(id, debugFile+"."+rand.Text())
	file, err := root.OpenFile(begun, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("cannot be kept in the cache: %w", err)
	}
	defer func() {
		err = cmp.Or(err, file.Close())
		if err == nil {
			err = root.Rename(begun, filepath.Join(id, debugFile))
		}
		if err != nil {
			_ = root.Remove(begun)
		}
	}()
	n, err := io.Copy(file, io.LimitReader(from, d.most+1))
	if err != nil {
		return err
	}
	if n > d.most {
		return fmt.Errorf("sends more than %d MB, which is not fetched", d.most>>20)
	}
	t, err := readTwin(file, uint64(n))
	if err != nil {
		return fmt.Errorf("sends what %w", err)
	}
	if err := t.of(id); err != nil {
		return fmt.Errorf("sends a wrong file: %w", err)
	}
	return nil
}

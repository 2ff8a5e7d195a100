package probes

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The names are those of systemd, docker, containerd, podman, cri-o and the kubelet
// with either driver of cgroups.
func TestFindCgroup(t *testing.T) {
	const (
		docker  = "3f4e8a1b9c0d3f4e8a1b9c0d3f4e8a1b9c0d3f4e8a1b9c0d3f4e8a1b9c0d3f4e"
		podman  = "77aa8a1b9c0d3f4e8a1b9c0d3f4e8a1b9c0d3f4e8a1b9c0d3f4e8a1b9c0d3f4e"
		plain   = "aabbcc1b9c0d3f4e8a1b9c0d3f4e8a1b9c0d3f4e8a1b9c0d3f4e8a1b9c0d3f4e"
		similar = "3f4e8affffff"
		pod     = "0c1d2e3f-1111-2222-3333-444455556666"
	)
	root := t.TempDir()
	for _, dir := range []string{
		"system.slice/nginx.service/worker",
		"system.slice/nginx-debug.service",
		"system.slice/docker-" + docker + ".scope/system.slice/nginx.service",
		"system.slice/ssh.service",
		"user.slice/user-1000.slice/app.service",
		"user.slice/user-1001.slice/app.service",
		"machine.slice/libpod-" + podman + ".scope/container",
		"machine.slice/libpod-conmon-" + podman + ".scope",
		"docker/" + plain + "/init-" + plain,
		"docker/" + similar,
		"kubepods.slice/kubepods-pod" + strings.ReplaceAll(pod, "-", "_") + ".slice/cri-containerd-dddddd.scope",
	} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		find       func(root, name string) (string, error)
		name, want string
		says       string
	}{
		{Unit, "ssh", "system.slice/ssh.service", ""},
		{Unit, "ssh.service", "system.slice/ssh.service", ""},
		{Unit, "user-1000.slice", "user.slice/user-1000.slice", ""},
		{Unit, "nginx", "", "unit nginx could be /system.slice/docker-" + docker + ".scope/system.slice/nginx.service, /system.slice/nginx.service: name one with --cgroup"},
		{Unit, "app", "", "could be /user.slice/user-1000.slice/app.service, /user.slice/user-1001.slice/app.service"},
		{Unit, "debug", "", "there is no unit debug below " + root + ": near to it is /system.slice/nginx-debug.service"},
		{Unit, "ngixn", "", "there is no unit ngixn below " + root + ": near to it are /system.slice/docker-" + docker + ".scope/system.slice/nginx.service, /system.slice/nginx.service"},
		{Unit, "shs.service", "", "near to it is /system.slice/ssh.service"},
		{Unit, "mysqld", "", "there is no unit mysqld below " + root + ": one has a cgroup there while it runs"},
		{Container, docker, "system.slice/docker-" + docker + ".scope", ""},
		{Container, docker[:8], "system.slice/docker-" + docker + ".scope", ""},
		{Container, strings.ToUpper(docker[:12]), "system.slice/docker-" + docker + ".scope", ""},
		{Container, docker[:6], "", "could be /docker/3f4e8affffff, /system.slice/docker-"},
		{Container, podman[:12], "machine.slice/libpod-" + podman + ".scope", ""},
		{Container, plain[:12], "docker/" + plain, ""},
		{Container, pod, "kubepods.slice/kubepods-pod" + strings.ReplaceAll(pod, "-", "_") + ".slice", ""},
		{Container, pod[:13], "kubepods.slice/kubepods-pod" + strings.ReplaceAll(pod, "-", "_") + ".slice", ""},
		{Container, "999999", "", "there is no container or pod 999999"},
	} {
		got, err := c.find(root, c.name)
		if c.says != "" {
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %q, %v; want %q", c.name, got, err, c.says)
			}
		} else if err != nil || got != filepath.Join(root, c.want) {
			t.Errorf("%s is %s, %v; want %s", c.name, got, err, c.want)
		}
	}
}

// A cgroup is named by its path, by that below the mount, and as /proc/PID/cgroup
// has it. Its files are those of its processes, those of groups below it included.
func TestCgroup(t *testing.T) {
	root, err := CgroupRoot()
	if err != nil {
		t.Skip(err)
	}
	name := fmt.Sprintf("uprobetop-test-%d", os.Getpid())
	dir := filepath.Join(root, name)
	below := filepath.Join(dir, "below")
	if err := os.MkdirAll(below, 0o755); err != nil {
		t.Skipf("no cgroup can be made: %v", err)
	}
	t.Cleanup(func() { os.Remove(below); os.Remove(dir) })
	for _, path := range []string{dir, name, "/" + name, dir + "/", name + "/below/.."} {
		if got, err := Cgroup(root, path); err != nil || got != dir {
			t.Errorf("%s is %s, %v", path, got, err)
		}
	}
	for _, path := range []string{name + "/nothing", t.TempDir(), filepath.Join(dir, "cgroup.procs"), "../../../../etc"} {
		if got, err := Cgroup(root, path); err == nil || !strings.Contains(err.Error(), "there is no cgroup") {
			t.Errorf("%s is %s, %v", path, got, err)
		}
	}
	empty := processes(t, Filter{Cgroups: []string{dir}})
	if empty.Label != name || len(empty.Files) != 0 || empty.Ended() {
		t.Errorf("without processes: %s, %d files", empty.Label, len(empty.Files))
	}
	workers := startIdle(t, 3)
	for i, pid := range workers.pids {
		to := []string{dir, below, below}[i]
		if err := os.WriteFile(filepath.Join(to, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	target := processes(t, Filter{Cgroups: []string{dir}})
	if target.Label != name+", 3 processes" || !target.HasFile("worker") || !slices.Equal(target.Filter().Cgroups, []string{dir}) {
		t.Errorf("%s with %d files, filter %+v", target.Label, len(target.Files), target.Filter())
	}
	if one := processes(t, Filter{PIDs: workers.pids[:1]}); len(one.Files) != len(target.Files) {
		t.Errorf("one process has %d files, three %d", len(one.Files), len(target.Files))
	}
	with := processes(t, Filter{PIDs: workers.pids[:1], Cgroups: []string{dir}})
	for _, end := range workers.end {
		end()
	}
	if target.Ended() || with.Ended() {
		t.Error("a cgroup has ended, which can get new processes")
	}
}

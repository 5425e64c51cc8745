package guest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rdskit/rdskit/internal/lab/hosts"
	"github.com/rdskit/rdskit/internal/lab/job"
	"github.com/rdskit/rdskit/internal/lab/kmod"
	"golang.org/x/sys/unix"
)

// scratch is where the parts of the new root are put together: a directory that
// every root has and that nothing needs before the new root is there.
const scratch = "/proc"

// A root is the file tree that the job sees: the host's own, under a
// layer in memory that takes all writes, with the directories that
// the job may write on the host laid over it.
type root struct {
	share string // the host's tree, read and write
	dir   string // the tree to be
}

// newRoot gets at the host's tree.
func newRoot() (*root, error) {
	if err := unix.Mount("scratch", scratch, "tmpfs", 0, "mode=0755"); err != nil {
		return nil, fmt.Errorf("mount tmpfs on %s: %w", scratch, err)
	}
	r := &root{share: scratch + "/host", dir: scratch + "/root"}
	for _, d := range []string{r.share, r.dir, scratch + "/upper", scratch + "/work", scratch + "/shm"} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return nil, err
		}
	}
	if err := quietUevents(); err != nil {
		return nil, err
	}
	if err := insertInitramfsModules(); err != nil {
		return nil, err
	}
	return r, r.mountShare()
}

// mountShare mounts the host's tree, read and write: from the program that the
// machine is, or else from the device that the machine has for it.
func (r *root) mountShare() error {
	err := unix.Mount(job.ShareTag, r.share, "hostfs", 0, "/")
	if !errors.Is(err, unix.ENODEV) {
		if err != nil {
			return fmt.Errorf("mount hostfs: %w", err)
		}
		return nil
	}
	// The host's files are the job's alone while it runs: cached loosely, they
	// are several times as fast.
	const options = "trans=virtio,version=9p2000.L,msize=512000,cache=loose"
	if err := unix.Mount(job.ShareTag, r.share, "9p", 0, options); err != nil {
		return fmt.Errorf("mount 9p: %w", err)
	}
	return nil
}

// insertInitramfsModules loads what came along in the initramfs.
func insertInitramfsModules() error {
	files, err := filepath.Glob("/" + job.ModuleDir + "/*.ko")
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := kmod.InsertFile(file); err != nil {
			return err
		}
	}
	return nil
}

// quietUevents keeps the kernel from starting a process for each device and
// module that comes: no lab has the /sbin/hotplug of old.
func quietUevents() error {
	if err := unix.Mount("sysfs", "/sys", "sysfs", 0, ""); err != nil {
		return fmt.Errorf("mount sysfs: %w", err)
	}
	f, err := os.OpenFile("/sys/kernel/uevent_helper", os.O_WRONLY, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil // the kernel was built without it
	}
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString("\n")
	return err
}

// host is where a path of the host is found while the root is built.
func (r *root) host(path string) string { return filepath.Join(r.share, path) }

// build puts the root together and makes it the root of every process.
func (r *root) build(j *job.Job, jobDir string) error {
	if err := insertModules(r.host(j.ModuleTree), j.RootFiles); err != nil {
		return err
	}
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s/upper,workdir=%s/work", r.share, scratch, scratch)
	if err := unix.Mount("lab", r.dir, "overlay", 0, options); err != nil {
		return fmt.Errorf("mount overlay: %w", err)
	}
	if err := r.mountKernel(); err != nil {
		return err
	}
	// Outer directories first, or they would hide the inner ones.
	writable := append(slices.Clone(j.Writable), jobDir)
	slices.Sort(writable)
	for _, dir := range slices.Compact(writable) {
		if err := r.writeThrough(dir); err != nil {
			return err
		}
	}
	if err := unix.Unmount(r.share, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount the share: %w", err)
	}
	// Kernel threads share this process's root, so that the helpers which
	// the kernel starts, modprobe above all, see the new one too.
	if err := os.Chdir(r.dir); err != nil {
		return err
	}
	if err := unix.Mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("move root: %w", err)
	}
	if err := unix.Chroot("."); err != nil {
		return fmt.Errorf("chroot: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	return populate(j)
}

// mountKernel mounts the file systems that belong to the guest's kernel.
func (r *root) mountKernel() error {
	// What the host has in /dev/shm stays visible: jobs live there too.
	shm := filepath.Join(r.dir, "dev/shm")
	var err error
	if _, serr := os.Stat(shm); serr == nil {
		err = unix.Mount(shm, scratch+"/shm", "", unix.MS_BIND, "")
	} else {
		err = unix.Mount("shm", scratch+"/shm", "tmpfs", 0, "mode=1777")
	}
	if err != nil {
		return fmt.Errorf("mount /dev/shm: %w", err)
	}
	for _, m := range []struct {
		source, target, fstype string
		flags                  uintptr
		data                   string
	}{
		{"proc", "proc", "proc", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC, ""},
		{"sysfs", "sys", "sysfs", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC, ""},
		{"dev", "dev", "devtmpfs", unix.MS_NOSUID, "mode=0755"},
		{"devpts", "dev/pts", "devpts", unix.MS_NOSUID | unix.MS_NOEXEC, "mode=0620,ptmxmode=0666"},
		{scratch + "/shm", "dev/shm", "", unix.MS_MOVE, ""},
	} {
		target := filepath.Join(r.dir, m.target)
		if err := os.MkdirAll(target, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m.source, target, m.fstype, m.flags, m.data); err != nil {
			return fmt.Errorf("mount %s: %w", m.target, err)
		}
	}
	for name, to := range map[string]string{"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"} {
		if err := os.Symlink(to, filepath.Join(r.dir, "dev", name)); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	return nil
}

// writeThrough lets the job write a path of the host.
func (r *root) writeThrough(path string) error {
	target := filepath.Join(r.dir, path)
	if err := unix.Mount(r.host(path), target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("make %s writable: %w", path, err)
	}
	return nil
}

// populate fills in what differs from the host's files.
func populate(j *job.Job) error {
	if err := os.MkdirAll(hosts.NetNSDir, 0o755); err != nil {
		return err
	}
	// The host may have namespaces of the same names.
	if err := unix.Mount("netns", hosts.NetNSDir, "tmpfs", 0, "mode=0755"); err != nil {
		return fmt.Errorf("mount %s: %w", hosts.NetNSDir, err)
	}
	names := hosts.EtcHosts(hostnameOf(j), j.Hosts)
	if j.RDMA || j.Machine != 0 {
		names += hosts.EtcHCAs()
	}
	if err := os.WriteFile("/etc/hosts", []byte(names), 0o644); err != nil {
		return err
	}
	if j.ModuleTree == "" {
		return nil
	}
	return linkModuleTree(j.ModuleTree)
}

// linkModuleTree shows the module tree where modprobe looks for it.
func linkModuleTree(tree string) error {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return err
	}
	dir := "/lib/modules"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	link := filepath.Join(dir, strings.TrimSpace(string(release)))
	if same, err := filepath.EvalSymlinks(link); err == nil && same == tree {
		return nil
	}
	if err := os.RemoveAll(link); err != nil {
		return err
	}
	return os.Symlink(tree, link)
}

// insertModules loads the files of modules of a tree.
func insertModules(tree string, files []string) error {
	for _, file := range files {
		if err := kmod.InsertFile(filepath.Join(tree, file)); err != nil {
			return err
		}
	}
	return nil
}

package lab

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/rdskit/rdskit/internal/lab/hosts"
	"github.com/rdskit/rdskit/internal/lab/job"
	"github.com/rdskit/rdskit/internal/lab/kernel"
)

// qemu is a PC, emulated or with the help of KVM.
type qemu struct{}

const qemuMemoryMiB = 2048

func (qemu) command(c *Config, k kernel.Image, dir *jobDir, n int) (*exec.Cmd, error) {
	program, err := kernel.FindQEMU(kernel.Roots()...)
	if err != nil {
		return nil, fmt.Errorf("%w: 'rds-lab setup --profile qemu' gets it", err)
	}
	initrd := filepath.Join(dir.path, "initrd")
	if err := writeInitramfs(initrd, filepath.Join(dir.path, initFile), k); err != nil {
		return nil, fmt.Errorf("initramfs: %w", err)
	}
	args := append([]string{program.Path}, program.Args...)
	return &exec.Cmd{
		Path: program.Path,
		Args: append(args, qemuArgs(c, k.Path, initrd, dir.path, n, haveKVM())...),
		Env:  append(os.Environ(), program.Env...),
	}, nil
}

func qemuArgs(c *Config, image, initrd, dir string, n int, kvm bool) []string {
	memory := c.MemoryMiB
	if memory == 0 {
		memory = qemuMemoryMiB
	}
	cpu := "max"
	if c.Deterministic {
		// Without them the kernel clears and copies by rep stosq and movsq: each round counts
		// as an instruction, and a round for each byte would make memory fifty times as slow as it is.
		cpu += ",-erms,-fsrm"
	}
	args := []string{"-machine", "q35", "-cpu", cpu, "-smp", strconv.Itoa(max(1, c.Processors)), "-m", strconv.Itoa(memory)}
	switch {
	case c.Deterministic:
		// Virtual time counts instructions, two nanoseconds each, and leaps over idle
		// times: what the host does meanwhile has no influence.
		args = append(args, "-accel", "tcg,thread=single", "-icount", "shift=1,sleep=off")
	case kvm:
		args = append(args, "-accel", "kvm", "-accel", "tcg,thread=multi") // the first that works
	default:
		args = append(args, "-accel", "tcg,thread=multi")
	}
	args = append(args,
		"-nodefaults", "-display", "none", "-no-reboot",
		"-device", "pvpanic-pci", "-action", "panic=exit-failure",
		"-add-fd", fmt.Sprintf("fd=%d,set=1", consoleFD),
		"-chardev", "file,id=console,path=/dev/fdset/1,append=on", "-serial", "chardev:console",
		"-kernel", image, "-initrd", initrd,
		// A kernel that restarts at once may do so before QEMU has seen that it panicked.
		"-append", fmt.Sprintf("console=ttyS0 loglevel=5 panic=5 mitigations=off %s=%s", job.EnvInit, dir),
		"-fsdev", "local,id=host,path=/,security_model=none,multidevs=remap",
		"-device", "virtio-9p-pci,fsdev=host,mount_tag="+job.ShareTag,
		"-device", fmt.Sprintf("virtio-serial-pci,max_ports=%d", job.NumLines+1),
	)
	for line := range job.NumLines {
		args = append(args,
			"-chardev", fmt.Sprintf("socket,id=%s,fd=%d", line, lineFD+int(line)),
			"-device", fmt.Sprintf("virtserialport,chardev=%s,name=%s%s", line, job.PortPrefix, line),
		)
	}
	if n != 0 {
		args = append(args,
			"-netdev", fmt.Sprintf("socket,id=wire,fd=%d", wireFD),
			"-device", fmt.Sprintf("virtio-net-pci,netdev=wire,mac=%s,romfile=", hosts.HCA{N: n}.MAC()),
		)
	}
	return args
}

// haveKVM tells whether this user may have the processor's help.
func haveKVM() bool {
	f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	if err != nil {
		return false
	}
	f.Close()
	return true
}

// panicked tells whether pvpanic ended the machine.
func (qemu) panicked(status int) bool { return status == 1 }

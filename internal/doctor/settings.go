package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rdskit/rdskit/cmsg"
)

// A setting is a parameter and its default on mainline.
type setting struct {
	name string
	// def is the default; more than one where it depends on how the kernel was built.
	def []string
	// what tells what another value means.
	what string
}

// The parameters below /proc/sys (net/rds/sysctl.c, tcp.c, ib_sysctl.c).
var sysctls = []setting{
	// One tick of the kernel's clock.
	{"net.rds.reconnect_min_delay_ms", []string{"1", "2", "3", "4", "10"}, "the shortest time before a lost connection is made again"},
	{"net.rds.reconnect_max_delay_ms", []string{"1000"}, "the longest time before a lost connection is made again"},
	{"net.rds.max_unacked_packets", []string{"8"}, "after how many messages an acknowledgement is asked for"},
	{"net.rds.max_unacked_bytes", []string{"16777216"}, "after how many bytes an acknowledgement is asked for"},
	{"net.rds.ping_enable", []string{"1"}, ""},
	{"net.rds.tcp.rds_tcp_sndbuf", []string{"0"}, "the send buffer of each TCP socket, fixed rather than tuned by the kernel"},
	{"net.rds.tcp.rds_tcp_rcvbuf", []string{"0"}, "the receive buffer of each TCP socket, fixed rather than tuned by the kernel"},
	{"net.rds.ib.max_send_wr", []string{"256"}, "the length of the send queue of each connection"},
	{"net.rds.ib.max_recv_wr", []string{"1024"}, "the length of the receive queue of each connection"},
	{"net.rds.ib.max_unsignaled_wr", []string{"16"}, "how many sends complete at a time"},
	{"net.rds.ib.max_recv_allocation", []string{"32768"}, "how many fragments all receive queues hold"},
	{"net.rds.ib.flow_control", []string{"0"}, "credits of the receiver"},
}

// The parameters of modules.
var parameters = []setting{
	{"rds.send_batch_count", []string{"1024"}, "how many messages are sent before other work has its turn"},
	{"rds_rdma.rds_ib_mr_1m_pool_size", []string{"4096"}, "how many memory regions of 1 MiB there are"},
	{"rds_rdma.rds_ib_mr_8k_pool_size", []string{"348160"}, "how many memory regions of 8 KiB there are"},
	{"rds_rdma.rds_ib_retry_count", []string{"1"}, "how often a lost send is repeated before the connection is dropped"},
}

const pingEnable = "net.rds.ping_enable"

func checkSysctls(f *Facts, r *report) {
	if !f.Loaded("rds") {
		r.skip("", "rds is not loaded, and its parameters come with it")
		return
	}
	if f.Last.Sysctls[pingEnable] == "0" {
		r.warn(pingEnable, toSet(pingEnable, 1), "it is 0: this host answers no RDS pings")
	}
	judge(f, r, sysctls, f.Last.Sysctls)
	if _, have := f.Last.Sysctls["net.rds.reconnect_max_delay_ms"]; !have {
		r.skip("", "net.rds.* but for net.rds.tcp.* exist in the initial network namespace only, which cannot be entered: run this there, or as root")
	}
}

func checkParameters(f *Facts, r *report) {
	values := make(map[string]string)
	for _, m := range f.Last.Modules {
		for name, v := range m.Parameters {
			values[m.Name+"."+name] = v
		}
	}
	if len(values) == 0 {
		r.skip("", "no module of RDS with parameters is loaded")
		return
	}
	judge(f, r, parameters, values)
}

// toSet is the remedy for a parameter below /proc/sys.
func toSet(name string, value int) remedy {
	return remedy{fmt.Sprintf("sysctl -w %s=%d", name, value), "and a file in /etc/sysctl.d to keep it"}
}

// judge holds values to their defaults.
func judge(f *Facts, r *report, settings []setting, values map[string]string) {
	if f.Last.Snapshot.Dialect == cmsg.UEK {
		var all []string
		for _, name := range slices.Sorted(maps.Keys(values)) {
			all = append(all, name+"="+values[name])
		}
		r.info("", "the defaults of Oracle UEK kernels are not known: %s", strings.Join(all, " "))
		return
	}
	usual := 0
	for _, s := range settings {
		v, ok := values[s.name]
		switch {
		case !ok:
		case slices.Contains(s.def, v):
			usual++
		case s.what != "":
			r.info(s.name, "it is %s, and %s by default: %s", v, s.def[0], s.what)
		}
	}
	switch {
	case usual == 1:
		r.ok("", "1 has its default")
	case usual > 1:
		r.ok("", "%d have their defaults", usual)
	}
}

const (
	// maxMessage is the longest message (net/rds/rds.h:RDS_MAX_MSG_SIZE).
	maxMessage = 1 << 20
	// usualBuffer is the smallest default that a kernel has for the buffers of sockets:
	// 256 packets of 256 bytes on a 32-bit machine (include/net/sock.h:_SK_MEM_PACKETS).
	usualBuffer = 131072
)

func checkBuffers(f *Facts, r *report) {
	found := 0
	for _, b := range []struct {
		name    string
		meaning string // of a small one
	}{
		{"net.core.wmem_max", "programs without CAP_NET_ADMIN can send no message of more than %d bytes, and have no more than that on the way"},
		{"net.core.wmem_default", "programs that set no send buffer can send no message of more than %d bytes, and have no more than that on the way"},
		{"net.core.rmem_max", "receivers without CAP_NET_ADMIN are congested when %d bytes wait to be read"},
		{"net.core.rmem_default", "receivers that set no buffer are congested when %d bytes wait to be read"},
	} {
		bytes, err := strconv.ParseUint(f.Last.Sysctls[b.name], 10, 63)
		if err != nil {
			continue
		}
		found++
		meaning := fmt.Sprintf(b.meaning, bytes)
		switch {
		case bytes < usualBuffer:
			r.warn(b.name, toSet(b.name, maxMessage), "it is %d bytes, less than any kernel has by default: %s", bytes, meaning)
		case bytes < maxMessage && b.name == "net.core.wmem_max":
			r.info(b.name, "%s; RDS itself takes %d", meaning, maxMessage)
		default:
			r.ok(b.name, "it is %d bytes", bytes)
		}
	}
	if found == 0 {
		r.skip("", "net.core.wmem_max and rmem_max exist in the initial network namespace only, which cannot be entered: run this there, or as root")
	}
}

// usualLock is a limit of locked memory below which RDMA programs fail soon: one message.
const usualLock = maxMessage

func checkLockedMemory(f *Facts, r *report) {
	limit := f.Last.LockedMemory
	bytes, err := strconv.ParseUint(limit, 10, 64)
	switch {
	case limit == "":
	case !f.Loaded("rds_rdma"):
		r.skip("", "memory is locked for RDMA only, and rds_rdma is not loaded")
	case err == nil && bytes < usualLock:
		r.warn("", remedy{"ulimit -l unlimited", "in the shell that starts the program; for good, memlock in /etc/security/limits.conf or LimitMEMLOCK= in the systemd unit"},
			"a process like this one may lock %s bytes only: registering memory for RDMA fails with ENOMEM", limit)
	case err == nil:
		r.ok("", "a process like this one may lock %s bytes", limit)
	default:
		r.ok("", "a process like this one may lock any amount of memory")
	}
}

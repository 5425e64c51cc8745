package doctor

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rdskit/rdskit/rdsinfo"
)

// connectionTo is one from 10.9.0.1, over TCP.
func connectionTo(remote string, flags rdsinfo.ConnectionFlags) rdsinfo.Connection {
	return rdsinfo.Connection{Local: addr("10.9.0.1"), Remote: addr(remote), Transport: "tcp", Flags: flags}
}

func connections(c ...rdsinfo.Connection) made { return made{connections: c} }

// text is what is told of a finding.
func text(f Finding) string {
	s := fmt.Sprintf("%v %s", f.Verdict, f.Check)
	if f.Subject != "" {
		s += " " + f.Subject
	}
	s += ": " + f.Reason
	if f.Remedy != "" || f.Advice != "" {
		s += " | " + f.Remedy
	}
	if f.Advice != "" {
		s += " # " + f.Advice
	}
	return s
}

// told are the findings of the checks named, or else the bad ones, in order.
func told(f *Facts, checks string) []string {
	var all []string
	for _, finding := range Examine(f) {
		if checks == "" && finding.Verdict.Bad() || checks != "" && strings.Contains(","+checks+",", ","+finding.Check+",") {
			all = append(all, text(finding))
		}
	}
	return all
}

func TestExamine(t *testing.T) {
	up := connectionTo("10.9.0.2", rdsinfo.Connected)
	down := connectionTo("10.9.0.2", 0)
	connecting := connectionTo("10.9.0.2", rdsinfo.Connecting)
	one := func(t *testing.T, m made) *Facts { return facts(t, m, m) }
	synSent := rdsinfo.TCPEndpoint{Local: addrPort("10.9.0.1:40000"), Remote: addrPort("10.9.0.2:16385"), State: "SYN-SENT", Retransmits: 1}
	for _, tt := range []struct {
		name   string
		facts  func(t *testing.T) *Facts
		checks string // to show all findings of; "" shows the bad ones of all checks
		want   []string
	}{
		{"all is well", func(t *testing.T) *Facts { return one(t, connections(up)) }, "", nil},
		{"all is well, in full", func(t *testing.T) *Facts { return one(t, connections(up)) }, "socket,module,namespace,link,address,listener,sysctl,parameter,buffer,memlock,rdma,connection,receiver,counter", []string{
			"ok socket: an RDS socket can be made",
			"ok module rds: it is loaded",
			"ok module rds_tcp: it is loaded",
			"info module rds_rdma: it is not loaded; without an RDMA device nothing needs it",
			"ok namespace net:[1]: it is the initial network namespace",
			"ok link eth0: it is up, with an MTU of 1500 bytes",
			"ok address 127.0.0.1: transport loopback, as for every loopback address: it reaches this host only",
			"ok address 10.9.0.1: transport tcp, since rds_tcp serves every local address, and rds_rdma is not loaded",
			"ok listener tcp port 16385: rds_tcp listens at ::; firewalls have to let it through in both directions",
			"ok sysctl: 4 have their defaults",
			"ok parameter: 1 has its default",
			"ok buffer net.core.wmem_max: it is 4194304 bytes",
			"ok buffer net.core.rmem_max: it is 4194304 bytes",
			"skip rdma: this host has no RDMA device",
			"ok connection: 1 up",
			"ok counter: nothing was dropped in 1.0 s",
		}},

		{"no module", func(t *testing.T) *Facts {
			f := one(t, made{})
			for _, b := range []*rdsinfo.Bundle{f.First, f.Last} {
				b.Modules, b.SocketError, b.TCP = nil, "address family not supported by protocol", rdsinfo.TCP{}
			}
			return f
		}, "", []string{
			"fail socket: no RDS socket can be made, since the module rds is not loaded | modprobe rds_tcp # or rds_rdma, for InfiniBand and RoCE; each brings rds along",
			"fail module rds: it is not loaded: nothing of RDS works without | modprobe rds_tcp # or rds_rdma, for InfiniBand and RoCE; each brings rds along",
			"fail module rds_tcp: it is not loaded, and neither is rds_rdma: without a transport no other host can be reached | modprobe rds_tcp # or rds_rdma, for InfiniBand and RoCE",
		}},
		{"a module that is blocked", func(t *testing.T) *Facts {
			f := one(t, made{})
			f.Last.Modules, f.Last.SocketError, f.Last.TCP = nil, "address family not supported by protocol", rdsinfo.TCP{}
			f.Last.ModuleRules = []rdsinfo.ModuleRule{{Module: "rds", File: "/etc/modprobe.d/cis.conf", Line: 7, Text: "install rds /bin/false"}}
			return f
		}, "socket", []string{
			`fail socket: no RDS socket can be made, since the module rds is not loaded, and "install rds /bin/false" in /etc/modprobe.d/cis.conf, line 7 stops it from being loaded | sed -i '7s/^/# /' /etc/modprobe.d/cis.conf && modprobe rds_tcp # or rds_rdma, for InfiniBand and RoCE; each brings rds along`,
		}},
		{"a socket that cannot be made though rds is loaded", func(t *testing.T) *Facts {
			f := one(t, made{})
			f.Last.SocketError = "cannot allocate memory"
			return f
		}, "socket,address", []string{
			"fail socket: no RDS socket can be made, though rds is loaded: cannot allocate memory | dmesg | grep -i rds",
			"skip address: which transport serves an address shows with a socket only",
		}},
		{"rds without rds_tcp", func(t *testing.T) *Facts {
			f := one(t, made{})
			f.Last.Modules, f.Last.TCP = f.Last.Modules[:1], rdsinfo.TCP{}
			a := &f.Last.Namespace.Addresses[1]
			a.Transport, a.BindError = "", "bind: cannot assign requested address"
			return f
		}, "", []string{
			"fail module rds_tcp: it is not loaded, and neither is rds_rdma: without a transport no other host can be reached | modprobe rds_tcp # or rds_rdma, for InfiniBand and RoCE",
			"fail address 10.9.0.1: no transport serves it: rds_tcp is not loaded | modprobe rds_tcp # or rds_rdma, for InfiniBand and RoCE",
		}},
		{"RDMA devices without rds_rdma", func(t *testing.T) *Facts {
			f := one(t, made{})
			f.Last.RDMAPorts = []rdsinfo.RDMAPort{{Device: "mlx5_0", Port: 1, State: "DOWN", LinkLayer: "Ethernet"}}
			return f
		}, "", []string{
			"warn module rds_rdma: it is not loaded, so that RDS does not use the RDMA devices of this host | modprobe rds_rdma",
			"warn rdma mlx5_0 port 1: its state is DOWN, not ACTIVE: it carries nothing | rdma link show # names its network interface, which is down or has no carrier",
		}},
		{"an address over RoCE, and one whose GID is missing", func(t *testing.T) *Facts {
			f := one(t, made{})
			f.Last.Modules = append(f.Last.Modules, rdsinfo.Module{Name: "rds_rdma"})
			f.Last.RDMAPorts = []rdsinfo.RDMAPort{{Device: "rxe0", Port: 1, State: "ACTIVE", LinkLayer: "Ethernet", GIDs: []rdsinfo.GID{{GID: addr("::ffff:10.9.0.1"), Type: "RoCE v2", NetDev: "eth0"}}}}
			f.Last.Namespace.Addresses[1].Transport = "infiniband"
			f.Last.Namespace.Addresses = append(f.Last.Namespace.Addresses, rdsinfo.Address{Addr: addr("10.8.0.1"), Bits: 24, Device: "eth0", Usable: true, Transport: "infiniband"})
			f.Last.LockedMemory = "65536"
			return f
		}, "rdma,memlock", []string{
			"warn memlock: a process like this one may lock 65536 bytes only: registering memory for RDMA fails with ENOMEM | ulimit -l unlimited # in the shell that starts the program; for good, memlock in /etc/security/limits.conf or LimitMEMLOCK= in the systemd unit",
			"ok rdma rxe0 port 1: it is active, on Ethernet, with 1 GIDs",
			"ok rdma 10.9.0.1: GID ::ffff:10.9.0.1 of rxe0 port 1",
			"warn rdma 10.8.0.1: infiniband serves it, but no active port has a GID for it or its interface eth0 | rdma link show # names the network interface of each port: the address belongs on one whose port is active",
		}},
		{"RDMA connections of which one does not work", func(t *testing.T) *Facts {
			ib := func(remote string) rdsinfo.Connection {
				return rdsinfo.Connection{Local: addr("10.9.0.1"), Remote: addr(remote), Transport: "infiniband", Flags: rdsinfo.Connected}
			}
			f := one(t, connections(ib("10.9.0.2"), ib("10.9.0.3"), ib("10.9.0.4")))
			for _, b := range []*rdsinfo.Bundle{f.First, f.Last} {
				b.RDMAPorts = []rdsinfo.RDMAPort{{Device: "rxe0", Port: 1, State: "ACTIVE", LinkLayer: "Ethernet", Regions: 2, RegionBytes: 12288}}
				b.RDMAConnections = []rdsinfo.RDMAConnection{
					{Device: "rxe0", Port: 1, Local: addr("10.9.0.1"), Remote: addr("10.9.0.2"), QueuePair: 17, QueuePairState: "ERR"},
					{Device: "rxe0", Port: 1, Local: addr("10.9.0.1"), Remote: addr("10.9.0.2"), QueuePair: 19, QueuePairState: "RTS"},
					{Device: "rxe0", Port: 1, Local: addr("10.9.0.1"), Remote: addr("10.9.0.3"), QueuePair: 18, QueuePairState: "ERR"},
				}
				b.RDMACounters = []rdsinfo.RDMACounter{{Device: "rxe0", Port: 1, Name: "sent_pkts"}, {Device: "rxe0", Port: 1, Name: "retry_exceeded_err", Value: 2}}
			}
			f.Last.RDMACounters[0].Value, f.Last.RDMACounters[1].Value = 500, 3
			return f
		}, "rdma", []string{
			"ok rdma rxe0 port 1: it is active, on Ethernet, with 0 GIDs; RDS has 2 memory regions of 12288 bytes in all on it",
			"warn rdma rxe0 port 1: peers did not acknowledge at all: connections broke: retry_exceeded_err grew by 1 in 1.0 s | rdma statistic show link rxe0/1 # look at the link, its cable, switch and settings for loss (PFC, ECN)",
			"fail rdma 10.9.0.1 to 10.9.0.3, infiniband: RDS takes it to be up, but its queue pair 18 of rxe0 is in state ERR, not RTS: nothing gets through | dmesg | grep -i rds",
			"fail rdma 10.9.0.1 to 10.9.0.4, infiniband: RDS takes it to be up, but it has no queue pair: nothing gets through | dmesg | grep -i rds",
		}},
		{"an address that is not local", func(t *testing.T) *Facts {
			f := one(t, made{})
			f.Local = addr("10.9.0.9")
			return f
		}, "address", []string{
			"fail address 10.9.0.9: 10.9.0.9 is not an address of this host | ip address add 10.9.0.9/24 dev eth0 # if this host should have it",
		}},
		{"an address that went while a socket is bound to it", func(t *testing.T) *Facts {
			f := one(t, made{sockets: []rdsinfo.Socket{{Bound: addrPort("10.9.0.9:4000"), Inode: 77}}})
			f.Processes = map[uint64][]rdsinfo.Process{77: {{PID: 12, Command: "oracle"}}}
			return f
		}, "", []string{
			"warn address 10.9.0.9: oracle (process 12) has a socket bound to it, but it is not an address of this host any more | ip address add 10.9.0.9/24 dev eth0 # if this host should have it; or restart the program",
		}},
		{"a socket of another namespace is none of ours", func(t *testing.T) *Facts {
			f := one(t, made{sockets: []rdsinfo.Socket{{Bound: addrPort("10.9.0.9:4000")}}})
			f.Last.Others = []rdsinfo.Namespace{{Inode: 2, Name: "blue", Addresses: []rdsinfo.Address{{Addr: addr("10.9.0.9"), Bits: 24}}}}
			return f
		}, "", nil},
		{"nobody listens", func(t *testing.T) *Facts {
			f := one(t, made{})
			f.Last.TCP.Endpoints = nil
			return f
		}, "", []string{
			"fail listener tcp port 16385: rds_tcp is loaded, but nobody listens: peers cannot connect to this host | modprobe -r rds_tcp && modprobe rds_tcp # once no program uses RDS",
		}},
		{"the only link is down", func(t *testing.T) *Facts {
			f := one(t, made{})
			f.Last.Links[1].Up, f.Last.Links[1].Running = false, false
			return f
		}, "", []string{
			"warn link eth0: it is down, so that nothing is reached from its addresses (10.9.0.1) | ip link set eth0 up",
		}},
		{"parameters that differ, and pings off", func(t *testing.T) *Facts {
			f := one(t, made{})
			f.Last.Sysctls["net.rds.reconnect_max_delay_ms"] = "60000"
			f.Last.Sysctls["net.rds.ping_enable"] = "0"
			return f
		}, "sysctl", []string{
			"warn sysctl net.rds.ping_enable: it is 0: this host answers no RDS pings | sysctl -w net.rds.ping_enable=1 # and a file in /etc/sysctl.d to keep it",
			"info sysctl net.rds.reconnect_max_delay_ms: it is 60000, and 1000 by default: the longest time before a lost connection is made again",
			"ok sysctl: 2 have their defaults",
		}},
		{"parameters of another namespace", func(t *testing.T) *Facts {
			f := one(t, made{})
			f.Last.Namespace.Initial = false
			f.Last.Sysctls = map[string]string{"net.rds.tcp.rds_tcp_sndbuf": "0"}
			return f
		}, "sysctl,buffer,namespace", []string{
			"info namespace net:[1]: it is not the initial network namespace: it has no transport infiniband and no net.rds parameters but those of tcp",
			"ok sysctl: 1 has its default",
			"skip sysctl: net.rds.* but for net.rds.tcp.* exist in the initial network namespace only, which cannot be entered: run this there, or as root",
			"skip buffer: net.core.wmem_max and rmem_max exist in the initial network namespace only, which cannot be entered: run this there, or as root",
		}},
		{"parameters of UEK are shown, not judged", func(t *testing.T) *Facts {
			f := one(t, made{uek: true})
			f.Last.Sysctls = map[string]string{"net.rds.a": "5", "net.rds.reconnect_max_delay_ms": "7"}
			return f
		}, "sysctl", []string{
			"info sysctl: the defaults of Oracle UEK kernels are not known: net.rds.a=5 net.rds.reconnect_max_delay_ms=7",
		}},
		{"a tiny wmem_max", func(t *testing.T) *Facts {
			f := one(t, made{})
			f.Last.Sysctls["net.core.wmem_max"] = "16384"
			return f
		}, "", []string{
			"warn buffer net.core.wmem_max: it is 16384 bytes, less than any kernel has by default: programs without CAP_NET_ADMIN can send no message of more than 16384 bytes, and have no more than that on the way | sysctl -w net.core.wmem_max=1048576 # and a file in /etc/sysctl.d to keep it",
		}},

		{"a peer that refuses", func(t *testing.T) *Facts {
			f := one(t, connections(connecting))
			f.Last.TCP.AttemptsFailed = 20
			return f
		}, "", []string{
			"fail connection 10.9.0.1 to 10.9.0.2, tcp: it is connecting, and was connecting 1.0 s ago: 10.9.0.2 refuses TCP port 16385: there is no RDS over TCP (20 attempts were refused meanwhile) | ssh 10.9.0.2 modprobe rds_tcp",
		}},
		{"a peer behind a firewall", func(t *testing.T) *Facts {
			f := one(t, connections(connecting))
			f.Last.TCP.Endpoints = append(f.Last.TCP.Endpoints, synSent)
			return f
		}, "", []string{
			"fail connection 10.9.0.1 to 10.9.0.2, tcp: it is connecting, and was connecting 1.0 s ago: nothing answers at TCP port 16385 of 10.9.0.2: a firewall drops it, since 10.9.0.2 answers on eth0 | sh -c 'nft list ruleset; iptables-save'; ssh 10.9.0.2 'nft list ruleset; iptables-save' # lists the rules: let TCP port 16385 through, here and on 10.9.0.2, in both directions",
		}},
		{"a peer far away that does not answer", func(t *testing.T) *Facts {
			f := one(t, connections(connecting))
			f.Last.TCP.Endpoints = append(f.Last.TCP.Endpoints, synSent)
			f.Last.Peers[0].Gateway = addr("10.9.0.254")
			return f
		}, "", []string{
			"fail connection 10.9.0.1 to 10.9.0.2, tcp: it is connecting, and was connecting 1.0 s ago: nothing answers at TCP port 16385 of 10.9.0.2: a firewall drops it, or 10.9.0.2 is down | sh -c 'nft list ruleset; iptables-save'; ssh 10.9.0.2 'nft list ruleset; iptables-save' # lists the rules: let TCP port 16385 through, here and on 10.9.0.2, in both directions",
		}},
		{"a peer that is not on the link", func(t *testing.T) *Facts {
			f := one(t, connections(connecting))
			f.Last.Peers[0].Neighbor = "failed"
			return f
		}, "", []string{
			"fail connection 10.9.0.1 to 10.9.0.2, tcp: it is connecting, and was connecting 1.0 s ago: 10.9.0.2 does not answer on eth0 (ip neighbour: FAILED): it is down, its link is, or it is not in this network | ping -c 3 -I eth0 10.9.0.2 # look at 10.9.0.2: is it up, is its link, has it this address",
		}},
		{"a peer that no route leads to", func(t *testing.T) *Facts {
			f := one(t, connections(connectionTo("192.0.2.1", 0)))
			f.Last.Peers[0].RouteError, f.Last.Peers[0].Device = "route to 192.0.2.1: network is unreachable", ""
			return f
		}, "", []string{
			"warn connection 10.9.0.1 to 192.0.2.1, tcp: it is down, and was down 1.0 s ago: route to 192.0.2.1: network is unreachable | ip route show # lists those that there are; to add one: ip route add 192.0.2.1 via GATEWAY",
		}},
		{"a connection whose link is down", func(t *testing.T) *Facts {
			f := one(t, connections(down))
			f.Last.Links[1].Up = false
			return f
		}, "", []string{
			"fail link eth0: it is down, so that nothing is reached from its addresses (10.9.0.1) | ip link set eth0 up",
			"warn connection 10.9.0.1 to 10.9.0.2, tcp: it is down, and was down 1.0 s ago: eth0 is down | ip link set eth0 up",
		}},
		{"a connection that waits for the peer", func(t *testing.T) *Facts {
			return one(t, connections(connectionTo("10.9.0.0", 0)))
		}, "", []string{
			"warn connection 10.9.0.1 to 10.9.0.0, tcp: it is down, and was down 1.0 s ago: the kernel waits for 10.9.0.0, which has the smaller address, to connect again | rds-ping -c 1 -I 10.9.0.1 10.9.0.0 # a message makes this host connect, too; if it gets no answer: rds-info doctor on 10.9.0.0",
		}},
		{"a connection whose address went", func(t *testing.T) *Facts {
			f := one(t, connections(up))
			f.Last.Namespace.Addresses[1].Addr = addr("10.9.0.7")
			return f
		}, "", []string{
			"warn connection 10.9.0.1 to 10.9.0.2, tcp: it is up, but 10.9.0.1 is not an address of this host any more | ip address add 10.9.0.1/24 dev eth0 # if this host should have it",
		}},
		{"a connection that is stuck", func(t *testing.T) *Facts {
			m := connections(up)
			m.retransmit = []rdsinfo.Message{{Local: addrPort("10.9.0.1:4000"), Remote: addrPort("10.9.0.2:4000"), Seq: 9, Bytes: 100}}
			f := one(t, m)
			f.Last.TCP.Endpoints = append(f.Last.TCP.Endpoints, rdsinfo.TCPEndpoint{Local: synSent.Local, Remote: synSent.Remote, State: "ESTAB", Unacked: 148, Retransmits: 3})
			return f
		}, "", []string{
			"fail connection 10.9.0.1 to 10.9.0.2, tcp: it is up and stuck: nothing was acknowledged in 1.0 s: 10.9.0.2 acknowledges nothing over TCP (148 bytes, sent 4 times): a firewall drops it, since 10.9.0.2 answers on eth0, or the link between is cut; waiting for it: 1 message of 100 bytes in all | sh -c 'nft list ruleset; iptables-save'; ssh 10.9.0.2 'nft list ruleset; iptables-save' # lists the rules: let TCP port 16385 through, here and on 10.9.0.2, in both directions; if nothing drops it: ping 10.9.0.2",
		}},
		{"a connection that was lost and made again", func(t *testing.T) *Facts {
			f := one(t, connections(up))
			f.Between = []*rdsinfo.Snapshot{connections(down).snapshot(t), connections(up).snapshot(t), connections(connecting).snapshot(t)}
			return f
		}, "", []string{
			"warn connection 10.9.0.1 to 10.9.0.2, tcp: it is flapping: lost 2 times within 1.0 s, and up now | ip -s link show dev eth0; dmesg | grep -i rds # here and on 10.9.0.2, where rds-info doctor may see more; what resets it may be the link, writes to net.rds.tcp.*, or a program that kills sockets (ss -K)",
		}},
		{"a connection whose TCP sockets were replaced", func(t *testing.T) *Facts {
			before, after := connections(up), connections(up)
			before.tcp = [][2]string{{"10.9.0.1:1111", "10.9.0.2:16385"}}
			after.tcp = [][2]string{{"10.9.0.1:2222", "10.9.0.2:16385"}}
			return facts(t, before, after)
		}, "", []string{
			"warn connection 10.9.0.1 to 10.9.0.2, tcp: it is flapping: lost once within 1.0 s, and up now | ip -s link show dev eth0; dmesg | grep -i rds # here and on 10.9.0.2, where rds-info doctor may see more; what resets it may be the link, writes to net.rds.tcp.*, or a program that kills sockets (ss -K)",
		}},
		{"a connection that was lost just now", func(t *testing.T) *Facts { return facts(t, connections(up), connections(down)) }, "connection", []string{
			"warn connection 10.9.0.1 to 10.9.0.2, tcp: it is down, and was up 1.0 s ago: no cause shows on this host | dmesg | grep -i rds # here and on 10.9.0.2, where rds-info doctor may see more",
		}},
		{"an error of UEK", func(t *testing.T) *Facts { return one(t, connections(connectionTo("10.9.0.2", rdsinfo.Failed))) }, "", []string{
			"fail connection 10.9.0.1 to 10.9.0.2, tcp: it is error, and was error 1.0 s ago: no cause shows on this host | dmesg | grep -i rds # here and on 10.9.0.2, where rds-info doctor may see more",
		}},
		{"a connection of another namespace is none of ours", func(t *testing.T) *Facts {
			c := down
			c.Local = addr("10.9.0.9")
			f := one(t, connections(c))
			f.Last.Others = []rdsinfo.Namespace{{Inode: 2, Name: "blue", Addresses: []rdsinfo.Address{{Addr: addr("10.9.0.9"), Bits: 24}}}}
			return f
		}, "connection", []string{
			"info connection: there is none: the kernel makes one when a program first sends to a host",
			"info connection: 1 more is of another network namespace, which this kernel shows as well",
		}},

		{"a receiver that reads nothing", func(t *testing.T) *Facts {
			m := made{
				sockets: []rdsinfo.Socket{{Bound: addrPort("10.9.0.1:4000"), ReceiveBuffer: 100, Inode: 5}},
				receive: []rdsinfo.Message{{Local: addrPort("10.9.0.1:4000"), Remote: addrPort("10.9.0.2:1"), Seq: 1, Bytes: 60}, {Local: addrPort("10.9.0.1:4000"), Remote: addrPort("10.9.0.2:1"), Seq: 2, Bytes: 60}},
			}
			return one(t, m)
		}, "", []string{
			"fail receiver 10.9.0.1:4000: the receiver is congested: some program has 2 messages of 120 bytes waiting, its buffer is 100, and reads nothing (for at least 1.0 s); senders to it have to wait | rds-info -ak --procs --filter local=10.9.0.1,port=4000 # look at the program: is it stopped, blocked or overloaded; should it ask for a larger buffer (SO_RCVBUF, up to net.core.rmem_max=4194304)",
		}},
		{"a receiver that is slow", func(t *testing.T) *Facts {
			m := func(seq uint64) made {
				return made{
					sockets: []rdsinfo.Socket{{Bound: addrPort("10.9.0.1:4000"), ReceiveBuffer: 100}},
					receive: []rdsinfo.Message{{Local: addrPort("10.9.0.1:4000"), Remote: addrPort("10.9.0.2:1"), Seq: seq, Bytes: 120}},
				}
			}
			return facts(t, m(1), m(2))
		}, "receiver", []string{
			"warn receiver 10.9.0.1:4000: the receiver is congested: some program has 1 message of 120 bytes waiting, its buffer is 100, and reads too slowly; senders to it have to wait | rds-info -ak --procs --filter local=10.9.0.1,port=4000 # look at the program: is it stopped, blocked or overloaded; should it ask for a larger buffer (SO_RCVBUF, up to net.core.rmem_max=4194304)",
		}},
		{"counters of drops that move", func(t *testing.T) *Facts {
			return facts(t, made{counters: map[string]uint64{"recv_drop_no_sock": 5, "cong_send_error": 1, "recv_drop_old_seq": 0, "recv_delivered": 1}},
				made{counters: map[string]uint64{"recv_drop_no_sock": 9, "cong_send_error": 2, "recv_drop_old_seq": 1, "recv_delivered": 100}})
		}, "counter", []string{
			"warn counter recv_drop_no_sock: messages arrived for ports that no socket is bound to: 4 times in 1.0 s | rds-info -ak # is the receiving program among them; do senders have the right port",
			"info counter recv_drop_old_seq: messages arrived twice, as after a reconnect; the second was dropped: once in 1.0 s",
			"warn counter cong_send_error: sends were refused since their destination is congested: a receiver on a peer does not read fast enough: once in 1.0 s | rds-info -an # lists the peers: rds-info doctor on them finds the receiver",
		}},
		{"a congested receiver on one of two peers", func(t *testing.T) *Facts {
			m := connections(up, connectionTo("10.9.0.3", rdsinfo.Connected))
			m.counters = map[string]uint64{"cong_send_blocked": 1}
			f := one(t, m)
			m.counters = map[string]uint64{"cong_send_blocked": 2}
			f.Last.Snapshot = m.snapshot(t)
			return f
		}, "counter", []string{
			"warn counter cong_send_blocked: sends waited since their destination is congested: a receiver on a peer does not read fast enough: once in 0.0 s | " +
				`for host in 10.9.0.2 10.9.0.3; do ssh "$host" rds-info doctor --quiet; done # finds the receiver on the peers`,
		}},
		{"one look says nothing about what moves", func(t *testing.T) *Facts {
			b := bundle(t, connections(up))
			return &Facts{First: b, Last: b}
		}, "connection,counter", []string{
			"ok connection: 1 up",
			"skip counter: one snapshot does not show what moves: give --from twice, the earlier bundle first",
		}},

		{"a host without an address", func(t *testing.T) *Facts {
			f := one(t, made{})
			f.Host = &Host{Name: "nowhere", Err: errors.New("no such host")}
			return f
		}, "", []string{
			"fail host nowhere: it has no address to try: no such host | getent ahosts nowhere # tells what the name stands for",
		}},
		{"an address that is no host's", func(t *testing.T) *Facts {
			f := one(t, connections())
			f.Host = &Host{Name: "224.0.0.1", Err: checkIsHost(addr("224.0.0.1"))}
			return f
		}, "", []string{
			"fail host 224.0.0.1: it has no address to try: 224.0.0.1 stands for many hosts, and RDS reaches one at a time |  # give the address of one host, and of the family of --local",
		}},
		{"a link-local host without its interface", func(t *testing.T) *Facts {
			f := one(t, connections())
			f.Host = &Host{Name: "fe80::2", Way: rdsinfo.Peer{Remote: addr("fe80::2"), RouteError: "a link-local address needs its interface"}}
			return f
		}, "", []string{
			"fail route fe80::2: a link-local address needs its interface | ip -brief link # lists the interfaces: rds-info doctor fe80::2%INTERFACE",
		}},
		{"a loopback address to reach it from", func(t *testing.T) *Facts {
			f := one(t, connections())
			f.Host = &Host{Name: "db2", Way: rdsinfo.Peer{Local: addr("127.0.0.1"), Remote: addr("10.9.0.2"), RouteError: "invalid argument"}}
			return f
		}, "", []string{
			"fail route 10.9.0.2: invalid argument | rds-info doctor 10.9.0.2 # without --local, or with an address that is not a loopback one",
		}},
		{"a host that another namespace reaches", func(t *testing.T) *Facts {
			f := one(t, made{})
			f.Last.Others = []rdsinfo.Namespace{{Inode: 2, Name: "blue", Addresses: []rdsinfo.Address{{Addr: addr("10.7.0.1"), Bits: 24}}}}
			f.Host = &Host{Name: "db2", Way: rdsinfo.Peer{Remote: addr("10.7.0.2"), RouteError: "network is unreachable"}}
			return f
		}, "", []string{
			"fail route 10.7.0.2: network is unreachable; wrong network namespace: blue has 10.7.0.1, in its network | rds-info doctor --netns blue db2",
		}},
		{"a host that is not connected is not pinged", func(t *testing.T) *Facts {
			f := one(t, made{})
			f.Host = &Host{Name: "db2", Way: rdsinfo.Peer{Local: addr("10.9.0.1"), Remote: addr("10.9.0.2"), Device: "eth0", MTU: 1500, Neighbor: "stale"}}
			return f
		}, "host,route,neighbor,ping", []string{
			"info host db2: its address is 10.9.0.2",
			"ok route 10.9.0.2: eth0, from 10.9.0.1, with an MTU of 1500 bytes",
			"ok neighbor 10.9.0.2: STALE on eth0",
			"skip ping 10.9.0.2: there is no connection to it, and a ping would make one, which stays: --probe permits that | rds-info doctor --probe db2",
		}},
		{"a host that answers, on a connection that the ping made", func(t *testing.T) *Facts {
			f := facts(t, made{}, connections(up))
			f.Host = &Host{Name: "db2", Probed: true, Way: rdsinfo.Peer{Local: up.Local, Remote: up.Remote, Device: "eth0"},
				Pings: []Ping{{Local: up.Local, Remote: up.Remote, Transport: "tcp", Sent: 2, Received: 2, RTT: 54321 * time.Nanosecond}}}
			return f
		}, "ping", []string{
			"info ping 10.9.0.1 to 10.9.0.2, tcp: the ping created this connection: it stays until the module of its transport is unloaded",
			"ok ping 10.9.0.1 to 10.9.0.2, tcp: 2 of 2 pings answered, the fastest in 54µs",
		}},
		{"a host that answers no pings", func(t *testing.T) *Facts {
			f := one(t, connections(up))
			f.Host = &Host{Name: "db2", Way: rdsinfo.Peer{Local: up.Local, Remote: up.Remote, Device: "eth0"},
				Pings: []Ping{{Local: up.Local, Remote: up.Remote, Transport: "tcp", Sent: 2}}}
			return f
		}, "", []string{
			"fail ping 10.9.0.1 to 10.9.0.2, tcp: none of 2 pings was answered: the connection is up, so that the kernel of 10.9.0.2 has them, but it answers no pings: net.rds.ping_enable is 0 there | ssh 10.9.0.2 sysctl -w net.rds.ping_enable=1",
		}},
		{"a host that no ping can be sent to", func(t *testing.T) *Facts {
			f := one(t, made{})
			f.Host = &Host{Name: "db2", PingErr: errors.New("no transport serves 10.9.0.1"), Way: rdsinfo.Peer{Local: up.Local, Remote: up.Remote, Device: "eth0"}}
			return f
		}, "", []string{
			"fail ping 10.9.0.2: no ping can be tried: no transport serves 10.9.0.1",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := tt.facts(t)
			if diff := cmp.Diff(tt.want, told(f, tt.checks)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			for _, finding := range Examine(f) {
				checkRemedy(t, finding)
			}
		})
	}
}

func TestTheLocalAddressSettlesTheFamilyOfTheHost(t *testing.T) {
	all := func() []netip.Addr { return []netip.Addr{addr("fd00::2"), addr("10.9.0.2")} }
	for local, want := range map[string][]netip.Addr{
		"10.9.0.1": {addr("10.9.0.2")},
		"fd00::1":  {addr("fd00::2")},
		"":         all(),
	} {
		a, _ := netip.ParseAddr(local)
		if diff := cmp.Diff(want, ofFamily(all(), a), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
			t.Errorf("%q (-want +got):\n%s", local, diff)
		}
	}
}

// Package cgroup has the kernel limit the memory, the processes and the processor
// time of a sandbox that is a process of this machine, by a control group of its
// own.
//
// In the second version of control groups that needs a group that was delegated to
// this program, as systemd does with Delegate=yes and container engines do, or the
// superuser. In the first version it needs the superuser. Where neither is to be
// had there is [ErrNone], and what a sandbox takes is counted several times a
// second instead.
package cgroup

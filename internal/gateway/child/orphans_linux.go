package child

import (
	"bytes"
	"os"
	"os/signal"
	"strconv"
	"syscall"
)

// reapOrphans reaps what children left behind, for as long as the program runs. Process 1 of a container inherits every orphan in
// it. Processes that were started here are not touched: their exit status is exec.Cmd's.
func reapOrphans() {
	died := make(chan os.Signal, 1)
	signal.Notify(died, syscall.SIGCHLD)
	reapOnce() // of those that ended before, nobody tells any more
	for range died {
		reapOnce()
	}
}

// reapOnce reaps every orphan that has ended.
func reapOnce() {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return
	}
	started.mu.Lock() // so that no process is started and over between the look and the wait
	defer started.mu.Unlock()
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || started.pids[pid] || !isOurZombie(pid) {
			continue
		}
		_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
	}
}

// isOurZombie reads proc(5): "pid (name) state parent", where the name may hold anything.
func isOurZombie(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	return len(fields) > 1 && string(fields[0]) == "Z" && string(fields[1]) == strconv.Itoa(os.Getpid())
}

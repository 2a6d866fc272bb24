package child

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const reaperEnv = "MCP_CHILD_REAPER"

// prSetChildSubreaper is PR_SET_CHILD_SUBREAPER of prctl(2): orphans below come to this process, as they come to process 1.
const prSetChildSubreaper = 36

// reaperMain is a program that has an orphan to reap and a child whose exit status it wants.
func reaperMain() {
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0); errno != 0 {
		panic(errno)
	}
	for i := range 50 {
		// The shell leaves a process behind that ends when its stdin does.
		cmd := exec.Command("sh", "-c", "cat <&3 & echo $!; exit "+strconv.Itoa(i%4))
		r, w, err := os.Pipe()
		if err != nil {
			panic(err)
		}
		cmd.ExtraFiles = []*os.File{r}
		out, err := cmd.StdoutPipe()
		if err != nil {
			panic(err)
		}
		if err := started.start(cmd); err != nil {
			panic(err)
		}
		var pid int
		if _, err := fmt.Fscan(out, &pid); err != nil {
			panic(err)
		}
		_ = cmd.Wait()
		started.forget(cmd.Process.Pid)
		if code := cmd.ProcessState.ExitCode(); code != i%4 {
			panic(fmt.Sprintf("exit status %d instead of %d", code, i%4))
		}
		_ = r.Close()
		_ = w.Close()
		if i == 0 { // one that ended before anybody looked is reaped too
			for !isOurZombie(pid) {
				runtime.Gosched()
			}
			go reapOrphans()
		}
		for end := time.Now().Add(testPatience); exists(pid); runtime.Gosched() { // until it is reaped
			if time.Now().After(end) {
				panic("it is not reaped")
			}
		}
	}
	if _, err := os.Stdout.WriteString("reaped\n"); err != nil {
		panic(err)
	}
}

func exists(pid int) bool { return syscall.Kill(pid, 0) == nil }

func TestOrphansAreReapedAndNoExitStatusIsStolen(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), reaperEnv+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "reaped" {
		t.Errorf("%v: %s", err, out)
	}
}

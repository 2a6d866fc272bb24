package gateway

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// trim gives back what the start alone needed: the pages of the program's code and constants that are mapped by now, which is most of what
// the process has resident. The system maps again what is needed again, from the file.
func trim() error {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("find the program: %w", err)
	}
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return fmt.Errorf("read the memory map: %w", err)
	}
	defer maps.Close()
	var from, to uint64
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) >= 5 && strings.Contains(fields[0], "-"): // "address perms offset dev inode path", see proc_pid_maps(5)
			from, to = 0, 0
			if isConstant := fields[1] == "r-xp" || fields[1] == "r--p"; isConstant && strings.Join(fields[5:], " ") == program {
				from, to = span(fields[0])
			}
		case len(fields) == 3 && fields[0] == "Anonymous:" && fields[1] == "0" && from < to: // nothing that the file does not have
			if _, _, errno := syscall.Syscall(syscall.SYS_MADVISE, uintptr(from), uintptr(to-from), syscall.MADV_DONTNEED); errno != 0 {
				return fmt.Errorf("give pages of the program back: %w", errno)
			}
		}
	}
	return nil
}

// span reads "from-to"; both are 0 if it is none.
func span(text string) (from, to uint64) {
	first, last, _ := strings.Cut(text, "-")
	from, err := strconv.ParseUint(first, 16, 64)
	if err != nil {
		return 0, 0
	}
	if to, err = strconv.ParseUint(last, 16, 64); err != nil {
		return 0, 0
	}
	return from, to
}

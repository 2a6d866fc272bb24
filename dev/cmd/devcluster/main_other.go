//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "devcluster: the local cluster needs Linux (its nodes are network namespaces and cgroups); use kind or a virtual machine instead")
	os.Exit(1)
}

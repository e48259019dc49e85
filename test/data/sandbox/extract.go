//go:build ignore

// Takes the functions of main.go out of the sources of a kubelet: `go run extract.go DIR >kubelet.go`, DIR that of k8s.io/kubernetes v1.X.Y.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
)

const header = `package main

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)
`

var wanted = map[string][]string{
	"kuberuntime/kuberuntime_sandbox_linux.go":   {"convertOverheadToLinuxResources", "calculateSandboxResources", "applySandboxResources"},
	"kuberuntime/kuberuntime_container_linux.go": {"calculateLinuxResources"},
	"cm/helpers_linux.go":                        {"MilliCPUToQuota", "MilliCPUToShares"},
}

func main() {
	fmt.Println(header)
	for name, functions := range wanted {
		path := filepath.Join(os.Args[1], "pkg/kubelet", name)
		text, err := os.ReadFile(path)
		if err != nil {
			panic(err)
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, text, 0)
		if err != nil {
			panic(err)
		}
		for _, declaration := range file.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			for _, one := range functions {
				if ok && function.Name.Name == one {
					fmt.Println(string(text[files.Position(function.Pos()).Offset:files.Position(function.End()).Offset]) + "\n")
				}
			}
		}
	}
}

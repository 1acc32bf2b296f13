// What every driver does as a process, whatever its library.

package lines

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
)

// Address is the HOST:PORT on the command line; without it the process ends.
func Address() string {
	if len(os.Args) != 2 {
		fmt.Fprintf(os.Stderr, "usage: %s HOST:PORT\n", filepath.Base(os.Args[0]))
		os.Exit(2)
	}
	return os.Args[1]
}

// Version is the answer to version: the module as the build has it.
func Version(library, module string) (any, error) {
	build, _ := debug.ReadBuildInfo()
	for _, each := range build.Deps {
		if each.Path == module {
			return map[string]string{"library": library, "version": each.Version[1:]}, nil
		}
	}
	return nil, errors.New("the build does not tell the version")
}

// Note keeps on standard error what an answer has no room for.
func Note(call string, err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", call, err)
	}
}

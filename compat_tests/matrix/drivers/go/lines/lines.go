// Package lines is what the drivers in Go share: calls as JSON objects, one a line, in; answers, one a line, out.
//
// A driver is a type with an exported method for each call that its library has, named as the call: CreateTopics for
// create_topics. It takes the arguments as a struct, and gives the result and an error. What goes wrong is said by errors: Unsupported for what the library does not have,
// Refused for a code of the protocol, and for the library's own errors the driver's Refusal, which finds the code
// in those that carry one; all others are LOCAL.
package lines

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"time"
)

// Patience is how long a library may try: below the 30 seconds that any call may take.
const Patience = 20 * time.Second

// Local names whatever is no error of the protocol.
const Local = "LOCAL"

// Unsupported says why the library cannot do what it is told.
type Unsupported string

func (u Unsupported) Error() string { return string(u) }

// Refused is a code that the broker answered, by Kafka's name of it.
type Refused struct {
	Name    string
	Message string
}

func (r Refused) Error() string { return r.Name + ": " + r.Message }

// Driver is what Serve needs to know about a library.
type Driver struct {
	// Library has the methods of the calls.
	Library any
	// Refusal is the code in an error of the library, if it carries one.
	Refusal func(error) (code int16, found bool)
	Close   func()
}

// Serve answers the calls on standard input, one by one, until there are no more.
func (d *Driver) Serve() {
	defer d.Close()
	input := bufio.NewReaderSize(os.Stdin, 1<<20)
	output := json.NewEncoder(os.Stdout)
	output.SetEscapeHTML(false)
	for {
		line, err := input.ReadBytes('\n')
		if len(line) > 1 {
			if failed := output.Encode(d.answer(line)); failed != nil {
				fmt.Fprintln(os.Stderr, "no more answers can be written:", failed)
				return
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				fmt.Fprintln(os.Stderr, "no more calls can be read:", err)
			}
			return
		}
	}
}

func (d *Driver) answer(line []byte) map[string]any {
	var named struct {
		Call string `json:"call"`
	}
	if err := json.Unmarshal(line, &named); err != nil {
		return d.failure(fmt.Errorf("the line is no call: %w", err))
	}
	method := reflect.ValueOf(d.Library).MethodByName(methodName(named.Call))
	if !method.IsValid() {
		return d.failure(Unsupported("this driver has no call " + named.Call))
	}
	arguments := reflect.New(method.Type().In(0))
	if err := json.Unmarshal(line, arguments.Interface()); err != nil {
		return d.failure(fmt.Errorf("the arguments cannot be read: %w", err))
	}
	answered := method.Call([]reflect.Value{arguments.Elem()})
	if err, failed := answered[1].Interface().(error); failed {
		return d.failure(err)
	}
	return map[string]any{"ok": answered[0].Interface()}
}

// methodName is CreateTopics for create_topics.
func methodName(call string) string {
	var name strings.Builder
	for word := range strings.SplitSeq(call, "_") {
		if word != "" {
			name.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return name.String()
}

func (d *Driver) failure(err error) map[string]any {
	var unsupported Unsupported
	if errors.As(err, &unsupported) {
		return map[string]any{"unsupported": string(unsupported)}
	}
	return map[string]any{"error": *d.Name(err), "message": err.Error()}
}

// Name is what Kafka calls that error: nil for none, and LOCAL for the library's own.
func (d *Driver) Name(err error) *string {
	if err == nil {
		return nil
	}
	name := Local
	var refused Refused
	if errors.As(err, &refused) {
		name = refused.Name
	} else if code, found := d.Refusal(err); found {
		name = NameOf(code)
	}
	return &name
}

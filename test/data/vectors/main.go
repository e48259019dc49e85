// Answers of a kubelet's own functions to cases that are recorded already, to record another version: suites of test/vectors, and the starts
// of test/data/state-files. Built as .ci/go-programs does it, with the sources of k8s.io/kubernetes v1.X.Y (1.34 and newer).
//
//	vectors SUITE <CASES >ANSWERS
//
// CASES are the lines of a suite, unpacked; ANSWERS are the same lines, whose `out` is what this kubelet says of their `in`. In the suite
// `starts` it is the answer of its release in `answers`. Where 1.36.3 says something else, that is beside it as `out_1.36.3`. Most cases
// are asked several times: one whose answers differ (Go's maps choose) is left out, and named on stderr. Without arguments it lists the suites.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
)

type object = map[string]any

var background = context.Background()

// suite is how cases of one name are asked.
type suite struct {
	answer func(in json.RawMessage) (any, error)
	// the whole line is asked about, and its `answers` are replaced
	whole bool
	// gates that are on, in versions that know them
	gates []string
	// answers that differ from time to time are good ones, and the one that is recorded is kept if it is among them
	byChance bool
	// how often each case is asked, and how many cases at once; 0: the default
	times, atOnce int
}

var suites = map[string]suite{}

// asking makes the function of a suite of one that takes its `in` decoded: anew each time, because functions change quantities in place.
func asking[In any](ask func(In) (any, error)) func(json.RawMessage) (any, error) {
	return func(text json.RawMessage) (any, error) {
		var in In
		if err := json.Unmarshal(text, &in); err != nil {
			return nil, err
		}
		return ask(in)
	}
}

func main() {
	klog.SetLogger(logr.Discard())
	names := strings.Join(slices.Sorted(maps.Keys(suites)), "\n")
	if len(os.Args) < 2 {
		fmt.Println(names)
		return
	}
	s, ok := suites[os.Args[1]]
	if !ok || len(os.Args) > 2 {
		fail(fmt.Errorf("usage: vectors SUITE <CASES >ANSWERS; the suites are\n%s", names))
	}
	if err := turnOn(s.gates); err != nil {
		fail(err)
	}
	lines, err := readLines(os.Stdin)
	if err != nil {
		fail(err)
	}
	if err := writeAnswers(s, lines); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "vectors:", err)
	os.Exit(1)
}

func turnOn(gates []string) error {
	for _, name := range gates {
		if !knows(name) {
			continue
		}
		if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(map[string]bool{name: true}); err != nil {
			return err
		}
	}
	return nil
}

// knows tells whether the version has a gate that may be set.
func knows(gate string) bool {
	spec, ok := utilfeature.DefaultMutableFeatureGate.GetAll()[featuregate.Feature(gate)]
	return ok && !spec.LockToDefault
}

// line is a case, with its members in their order.
type line struct {
	number  int
	members []member
}
type member struct {
	name  string
	value json.RawMessage
}

func (l *line) member(name string) json.RawMessage {
	for _, m := range l.members {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

func (l *line) set(name string, value json.RawMessage) {
	for i := range l.members {
		if l.members[i].name == name {
			l.members[i].value = value
			return
		}
	}
	l.members = append(l.members, member{name, value})
}

// setOut sets what this kubelet says, and beside it what 1.36.3 says where that is something else. A case without that member had the same.
func (l *line) setOut(out json.RawMessage) {
	of36 := l.member(before)
	if of36 == nil {
		of36 = l.member("out")
	}
	l.set("out", out)
	if of36 != nil && !sameValue(of36, out) {
		l.set(before, of36)
		return
	}
	l.members = slices.DeleteFunc(l.members, func(m member) bool { return m.name == before })
}

const before = "out_1.36.3"

func sameValue(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

func readLines(r io.Reader) ([]*line, error) {
	var lines []*line
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, 1<<26)
	for number := 1; scanner.Scan(); number++ {
		if len(bytes.TrimSpace(scanner.Bytes())) == 0 {
			continue
		}
		l, err := readLine(scanner.Bytes())
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		l.number = number
		lines = append(lines, l)
	}
	return lines, scanner.Err()
}

func readLine(text []byte) (*line, error) {
	l := &line{}
	decoder := json.NewDecoder(bytes.NewReader(text))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return nil, errors.New("it is no JSON object")
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		m := member{name: name.(string)}
		if err := decoder.Decode(&m.value); err != nil {
			return nil, err
		}
		l.members = append(l.members, m)
	}
	_, err := decoder.Token()
	return l, err
}

func (l *line) MarshalJSON() ([]byte, error) {
	text := []byte("{")
	for i, m := range l.members {
		name, err := json.Marshal(m.name)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			text = append(text, ',')
		}
		text = append(append(append(text, name...), ':'), m.value...)
	}
	return append(text, '}'), nil
}

type answer struct {
	out      json.RawMessage
	unstable bool
	err      error
}

// writeAnswers asks several cases at once, and writes their answers in the order of the lines.
func writeAnswers(s suite, lines []*line) error {
	if s.atOnce == 0 {
		s.atOnce = runtime.GOMAXPROCS(0)
	}
	if s.times == 0 {
		s.times = 10
	}
	answers := make([]chan answer, len(lines))
	free := make(chan struct{}, s.atOnce)
	for i := range lines {
		answers[i] = make(chan answer, 1)
	}
	go func() {
		for i, l := range lines {
			free <- struct{}{}
			go func() {
				answers[i] <- answerOf(s, l)
				<-free
			}()
		}
	}()
	out := bufio.NewWriter(os.Stdout)
	for i, l := range lines {
		a := <-answers[i]
		if a.err != nil {
			return errors.Join(fmt.Errorf("line %d: %w", l.number, a.err), out.Flush())
		}
		if a.unstable {
			fmt.Fprintf(os.Stderr, "vectors: line %d: its answers differ from time to time: left out\n", l.number)
			continue
		}
		if s.whole {
			l.set("answers", a.out)
		} else {
			l.setOut(a.out)
		}
		text, err := textOf(l)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s\n", text)
	}
	return out.Flush()
}

func answerOf(s suite, l *line) (a answer) {
	defer func() {
		if p := recover(); p != nil {
			a.err = fmt.Errorf("panic: %v", p)
		}
	}()
	in := l.member("in")
	if s.whole {
		in, a.err = textOf(l)
	}
	if in == nil {
		return answer{err: cmp.Or(a.err, errors.New("it has no `in`"))}
	}
	for range s.times {
		out, err := s.answer(in)
		if err != nil {
			return answer{err: err}
		}
		text, err := textOf(out)
		if err != nil {
			return answer{err: err}
		}
		switch {
		case a.out == nil || s.byChance && sameValue(text, l.member("out")):
			a.out = text
		case !s.byChance && !bytes.Equal(a.out, text):
			return answer{unstable: true}
		}
	}
	return a
}

func textOf(x any) (json.RawMessage, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(x)
	return bytes.TrimSpace(text.Bytes()), err
}

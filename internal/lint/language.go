package lint

import (
	"regexp/syntax"
	"slices"
	"strings"

	"apograph/internal/mm2"
)

// letters are the characters of which the names of topics consist, those first
// that make the better examples.
const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."

// maxSteps bounds a search for names: what needs more is not known.
const maxSteps = 10_000

// An automaton reads a name, and matches if one of its expressions matches all of
// it. What it finds out about its states it keeps, for the next search.
type automaton struct {
	text    string // the expressions, for telling automata apart
	prog    *syntax.Prog
	classes [len(letters)]uint16 // of letters that it does not tell apart
	states  []state
	ids     map[string]int32 // of states
}

// A state is where an automaton may be behind the beginning of a name.
type state struct {
	pcs     []uint32
	before  rune // the last character, or another that is as much of a word; -1: none
	matched bool // the name may end here
	next    [len(letters)]int32
}

// Numbers of states that are none.
const (
	unknownState int32 = -1
	deadState    int32 = -2 // no name goes on from here that matches
)

// newAutomaton returns one for expressions; nil if one of them is none.
func newAutomaton(expressions ...string) *automaton {
	var parts []string
	for _, x := range expressions {
		tree, err := syntax.Parse(x, syntax.Perl)
		if err != nil {
			return nil
		}
		parts = append(parts, "(?:"+tree.String()+")")
	}
	text := strings.Join(parts, "|")
	if parts == nil {
		text = `[^\x00-\x{10FFFF}]` // matches nothing
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil
	}
	a := &automaton{text: text, prog: prog, ids: map[string]int32{}}
	a.classify()
	a.state([]uint32{uint32(prog.Start)}, -1)
	return a
}

// classify finds the letters that the automaton does not tell apart.
func (a *automaton) classify() {
	numbers := map[string]uint16{}
	for i, r := range letters {
		key := []byte{0}
		if syntax.IsWordChar(r) {
			key[0] = 1
		}
		for n := range a.prog.Inst {
			switch in := &a.prog.Inst[n]; in.Op {
			case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
				if in.MatchRune(r) {
					key = append(key, byte(n), byte(n>>8))
				}
			}
		}
		if _, ok := numbers[string(key)]; !ok {
			numbers[string(key)] = uint16(len(numbers))
		}
		a.classes[i] = numbers[string(key)]
	}
}

// state returns the number of a state.
func (a *automaton) state(pcs []uint32, before rune) int32 {
	if len(pcs) == 0 {
		return deadState
	}
	key := make([]byte, 0, 1+4*len(pcs))
	key = append(key, byte(before))
	for _, pc := range pcs {
		key = append(key, byte(pc), byte(pc>>8), byte(pc>>16), byte(pc>>24))
	}
	id, ok := a.ids[string(key)]
	if !ok {
		id = int32(len(a.states))
		a.ids[string(key)] = id
		s := state{pcs: pcs, before: before}
		_, s.matched = a.reach(pcs, before, -1)
		for i := range s.next {
			s.next[i] = unknownState
		}
		a.states = append(a.states, s)
	}
	return id
}

// after returns the state behind one more letter.
func (a *automaton) after(id int32, letter int) int32 {
	if id == deadState {
		return deadState
	}
	if next := a.states[id].next[letter]; next != unknownState {
		return next
	}
	r := rune(letters[letter])
	waiting, _ := a.reach(a.states[id].pcs, a.states[id].before, r)
	var pcs []uint32
	for _, pc := range waiting {
		if in := &a.prog.Inst[pc]; in.MatchRune(r) {
			pcs = append(pcs, in.Out)
		}
	}
	slices.Sort(pcs)
	before := '-'
	if syntax.IsWordChar(r) {
		before = 'a'
	}
	next := a.state(slices.Compact(pcs), before)
	a.states[id].next[letter] = next
	return next
}

// matches reports whether a name may end at a state.
func (a *automaton) matches(id int32) bool { return id != deadState && a.states[id].matched }

// reach returns the instructions at which the automaton waits for a character,
// from those at pcs, between two characters; matched: it may end there. A negative
// character is an end of the name.
func (a *automaton) reach(pcs []uint32, before, behind rune) (waiting []uint32, matched bool) {
	flags := syntax.EmptyOpContext(before, behind)
	seen := make([]bool, len(a.prog.Inst))
	for todo := slices.Clone(pcs); len(todo) > 0; {
		pc := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[pc] {
			continue
		}
		seen[pc] = true
		switch in := &a.prog.Inst[pc]; in.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			todo = append(todo, in.Out, in.Arg)
		case syntax.InstCapture, syntax.InstNop:
			todo = append(todo, in.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(in.Arg)&^flags == 0 {
				todo = append(todo, in.Out)
			}
		case syntax.InstMatch:
			matched = true
		case syntax.InstFail:
		default:
			waiting = append(waiting, pc)
		}
	}
	return waiting, matched
}

// A language is the legal names that all of in match, and none of out.
type language struct{ in, out []*automaton }

// and returns what is in both.
func (l language) and(m language) language {
	return language{united(l.in, m.in), united(l.out, m.out)}
}

// united returns the automata of both, each once.
func united(a, b []*automaton) []*automaton {
	all := slices.Clone(a)
	for _, x := range b {
		if !slices.Contains(all, x) {
			all = append(all, x)
		}
	}
	return all
}

// known reports whether all expressions of the language could be read.
func (l language) known() bool { return !slices.Contains(l.in, nil) && !slices.Contains(l.out, nil) }

// names returns up to n names of the language, short ones first; sure is false if
// the search was given up, so that there may be more.
func (l language) names(n int) (found []string, sure bool) {
	if !l.known() || len(l.in) == 0 {
		return nil, false
	}
	s := newSearch(l, n)
	queue := []*position{{at: make([]int32, len(s.all))}}
	for steps := 0; steps < len(queue); steps++ {
		if steps > maxSteps {
			return found, false
		}
		p := queue[steps]
		if s.ends(p) {
			if name := p.name(); mm2.CheckTopicName(name) == nil {
				found = append(found, name)
			}
			if len(found) == n {
				return found, true
			}
		}
		for _, letter := range s.of {
			if q := s.after(p, letter); q != nil {
				queue = append(queue, q)
			}
		}
	}
	return found, true
}

// A search goes through the names of a language, by their length.
type search struct {
	all    []*automaton
	in     int   // how many of them have to match; the others must not
	of     []int // of letters that no automaton tells apart, one
	visits map[string]int
	most   int // visits of one position
	key    []byte
}

func newSearch(l language, most int) *search {
	s := &search{all: slices.Concat(l.in, l.out), in: len(l.in), visits: map[string]int{}, most: most}
	seen := map[string]bool{}
	for i := range len(letters) {
		s.key = s.key[:0]
		for _, a := range s.all {
			s.key = append(s.key, byte(a.classes[i]), byte(a.classes[i]>>8))
		}
		if !seen[string(s.key)] {
			seen[string(s.key)] = true
			s.of = append(s.of, i)
		}
	}
	return s
}

// A position is where the automata are behind the beginning of a name.
type position struct {
	at     []int32 // a state each
	letter int
	length int
	prev   *position
}

func (p *position) name() string {
	name := make([]byte, p.length)
	for q := p; q.length > 0; q = q.prev {
		name[q.length-1] = letters[q.letter]
	}
	return string(name)
}

// ends reports whether what stands in front of a position is in the language.
func (s *search) ends(p *position) bool {
	for i, a := range s.all {
		if a.matches(p.at[i]) != (i < s.in) {
			return false
		}
	}
	return true
}

// after returns the position behind one more letter; nil if it leads nowhere, or
// often enough to where the search has been.
func (s *search) after(p *position, letter int) *position {
	at := make([]int32, len(s.all))
	// Two names that no topic can have are longer than none, and shorter than those
	// that get as far: "." and "..".
	s.key = append(s.key[:0], byte(min(p.length, 2)))
	for i, a := range s.all {
		at[i] = a.after(p.at[i], letter)
		if at[i] == deadState && i < s.in {
			return nil
		}
		s.key = append(s.key, byte(at[i]), byte(at[i]>>8), byte(at[i]>>16))
	}
	if s.visits[string(s.key)] >= s.most {
		return nil
	}
	s.visits[string(s.key)]++
	return &position{at: at, letter: letter, length: p.length + 1, prev: p}
}

package replicate

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/gen"
	"github.com/leanovate/gopter/prop"
)

// routesCase is a set of routes over a few places: some of them have books, which
// do not clash, others are wanted.
type routesCase struct{ booked, wanted []route }

func routesOf(seed int64) routesCase {
	random := rand.New(rand.NewPCG(uint64(seed), 1))
	var places []place
	for i := range 2 + random.IntN(5) {
		places = append(places, place{fmt.Sprint("c", i%3), fmt.Sprint("t", i)})
	}
	var c routesCase
	seen := map[route]bool{}
	for range random.IntN(9) {
		w := route{places[random.IntN(len(places))], places[random.IntN(len(places))], fmt.Sprint("f", random.IntN(2))}
		if seen[w] {
			continue
		}
		seen[w] = true
		if random.IntN(3) == 0 && w.from != w.to && !collides(w, c.booked) && !onCycle(w, append(c.booked, w)) {
			c.booked = append(c.booked, w)
		} else {
			c.wanted = append(c.wanted, w)
		}
	}
	return c
}

func collides(w route, all []route) bool {
	for _, other := range all {
		if other != w && other.to == w.to {
			return true
		}
	}
	return false
}

// onCycle follows every way from where w ends, for as many steps as there are routes.
func onCycle(w route, all []route) bool {
	reached := map[place]bool{w.to: true}
	for range all {
		for _, other := range all {
			if reached[other.from] {
				reached[other.to] = true
			}
		}
	}
	return reached[w.from]
}

// want is what a case must come to, by the definition: what has a book has its
// route; else what collides with nothing, and lies on no cycle of what does not.
func (c routesCase) want() map[route]bool {
	all := append(append([]route{}, c.booked...), c.wanted...)
	var single []route
	single = append(single, c.booked...)
	for _, w := range c.wanted {
		if !collides(w, all) {
			single = append(single, w)
		}
	}
	held := map[route]bool{}
	for _, w := range c.booked {
		held[w] = true
	}
	for _, w := range c.wanted {
		if !collides(w, all) && !onCycle(w, single) {
			held[w] = true
		}
	}
	return held
}

// TestRoutesByDefinition: which routes are held is what the definition says, in
// whatever order they are asked for; and each that is not says why.
func TestRoutesByDefinition(t *testing.T) {
	parameters := gopter.DefaultTestParametersWithSeed(20261002)
	parameters.MinSuccessfulTests = 3000
	properties := gopter.NewProperties(parameters)
	properties.Property("held, and said", prop.ForAll(func(seed int64) string {
		c := routesOf(seed)
		want := c.want()
		for order := range 3 {
			shuffle := rand.New(rand.NewPCG(uint64(seed), uint64(2+order)))
			shuffle.Shuffle(len(c.booked), func(i, j int) { c.booked[i], c.booked[j] = c.booked[j], c.booked[i] })
			shuffle.Shuffle(len(c.wanted), func(i, j int) { c.wanted[i], c.wanted[j] = c.wanted[j], c.wanted[i] })
			r := &Routes{}
			for _, w := range c.booked {
				r.hold(w)
			}
			for _, w := range c.wanted {
				r.want(w)
				r.want(w) // asked again
			}
			r.settle()
			for _, w := range append(append([]route{}, c.booked...), c.wanted...) {
				if got := r.refusal(w) == ""; got != want[w] {
					return fmt.Sprintf("%v of %+v: held %t, want %t: %s", w, c, got, want[w], r.refusal(w))
				}
			}
		}
		return ""
	}, gen.Int64()))
	properties.TestingRun(t)
}

// TestRoutesGivenBack are free for others; nobody gives back what another one has.
func TestRoutesGivenBack(t *testing.T) {
	a, b, c := place{"1", "t"}, place{"2", "t"}, place{"3", "t"}
	first, second := route{a, c, "first"}, route{b, c, "second"}
	held := func(r *Routes, w route) bool { return r.refusal(w) == "" }
	for name, give := range map[string]func(*Routes){
		"its topic is gone": func(r *Routes) { r.give(c, "first") },
		"nothing is left":   func(r *Routes) { r.forget(); r.want(second) },
	} {
		for _, together := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, asked for together %t", name, together), func(t *testing.T) {
				r := &Routes{}
				r.want(first)
				if !together {
					r.settle()
				}
				r.want(second)
				r.settle()
				if held(r, second) || held(r, first) == together {
					t.Fatalf("first %t, second %t", held(r, first), held(r, second))
				}
				give(r)
				r.settle()
				if !held(r, second) {
					t.Error(r.refusal(second))
				}
			})
		}
	}
	r := &Routes{}
	r.hold(first)
	r.give(c, "second")
	r.want(second)
	if r.settle(); held(r, second) || !held(r, first) {
		t.Error("another one has given it back")
	}
}

package verify

// A stepKind says how a step of an alignment relates the two sequences.
type stepKind uint8

const (
	pairUp   stepKind = iota // the item stands for the elem, equal or not
	wantOnly                 // the elem has no item
	haveOnly                 // the item has no elem
)

// A step is one step of an alignment, in order.
type step struct {
	kind stepKind
	place
}

// Costs of an alignment. One difference outweighs everything else in a block;
// among equal numbers of differences records stand where they should, and what
// is known counts for more than what is not.
const (
	costDifference = 1 << 20
	costMoved      = 50            // a pair whose item does not stand in its place
	costUnknown    = 2             // an item where it is not known what should be there
	costHole       = 1             // nothing there, and that can be
	costUnforeseen = 2 * costMoved // a record behind the books that is not copied yet
)

// explain aligns what lies before exit.
func (w *window) explain(exit place) []step {
	if steps, ok := w.pin(exit); ok {
		return steps
	}
	switch {
	case exit.want == 0 || exit.have == 0:
		return w.inPlace(exit)
	case exit.want*exit.have > maxCells || w.plain(exit):
		return w.inPlace(exit)
	}
	g := newGrid(w, exit)
	g.fill()
	return g.trace(exit)
}

// firstCopies changes an alignment so that of two equal neighbours the first one
// counts as the copy and the second as too many. Where that is the last item
// before exit, and equal to the one behind, exit moves on.
func (w *window) firstCopies(exit place, steps []step) (place, []step) {
	for k := 0; k < len(steps); k++ {
		if steps[k].kind != haveOnly {
			continue
		}
		i, j := steps[k].want, steps[k].have
		if j+1 >= len(w.have) || i >= len(w.want) || w.want[i].unit == nil || !w.want[i].fits(&w.have[j]) || !alike(&w.have[j], &w.have[j+1]) {
			continue
		}
		switch {
		case k+1 == len(steps):
			exit = place{exit.want + 1, exit.have + 1}
			steps = append(steps, step{})
		case steps[k+1].kind != pairUp:
			continue
		}
		steps[k], steps[k+1] = step{pairUp, place{i, j}}, step{haveOnly, place{i + 1, j + 1}}
	}
	return exit, steps
}

// alike reports whether two items are equal records.
func alike(a, b *item) bool {
	return a.kind == dataRecord && b.kind == dataRecord && a.hash == b.hash
}

// plain reports whether the block before exit needs no search: every slot has
// its item in place, and at most one of them does not fit.
func (w *window) plain(exit place) bool {
	if exit.want != exit.have {
		return false
	}
	wrong := 0
	for i := range exit.want {
		if w.have[i].offset != w.want[i].want+w.shift {
			return false
		}
		if !w.want[i].fits(&w.have[i]) {
			wrong++
		}
	}
	return wrong <= 1
}

// explainEnd aligns the end of what is expected, where the target goes on and
// nothing says where that begins: as cheaply as possible.
func (w *window) explainEnd() (exit place, steps []step) {
	exit = place{len(w.want), min(len(w.have), len(w.want)+slack)}
	if exit.want*exit.have > maxCells {
		exit.have = w.position(w.want[len(w.want)-1].want + w.shift + 1)
		return exit, w.inPlace(exit)
	}
	g := newGrid(w, exit)
	g.fill()
	// What is left over is a difference. Where the target may go on as it likes
	// behind the books, it is one if it takes the place of a record.
	best, place := 0, exit.have
	if !w.follows {
		place = w.position(w.want[exit.want-1].want + 1)
	}
	for j := range g.last {
		g.last[j] += costDifference * int64(max(place-j, 0))
		if g.last[j] < g.last[best] || g.last[j] == g.last[best] && j <= place {
			best = j
		}
	}
	exit.have = best
	return exit, g.trace(exit)
}

// inPlace pairs each slot before exit with the item in its place.
func (w *window) inPlace(exit place) []step {
	var steps []step
	j := 0
	for i := range exit.want {
		want := w.want[i].want + w.shift
		for ; j < exit.have && w.have[j].offset < want; j++ {
			steps = append(steps, step{haveOnly, place{i, j}})
		}
		if j < exit.have && w.have[j].offset == want {
			steps = append(steps, step{pairUp, place{i, j}})
			j++
			continue
		}
		steps = append(steps, step{wantOnly, place{i, j}})
	}
	for ; j < exit.have; j++ {
		steps = append(steps, step{haveOnly, place{exit.want, j}})
	}
	return steps
}

// A grid finds the cheapest alignment of a block (Wagner and Fischer).
type grid struct {
	w     *window
	block place
	after int64      // shift behind the block; a record may stand as it does there
	moves []stepKind // by which each cell is reached best
	last  []int64    // costs of the last row
}

func newGrid(w *window, block place) *grid {
	return &grid{w: w, block: block, after: w.shiftAt(block), moves: make([]stepKind, (block.want+1)*(block.have+1))}
}

func (g *grid) fill() {
	width := g.block.have + 1
	before, row := make([]int64, width), make([]int64, width)
	for j := 1; j < width; j++ {
		before[j] = before[j-1] + costDifference
		g.moves[j] = haveOnly
	}
	for i := 1; i <= g.block.want; i++ {
		e := &g.w.want[i-1]
		drop := g.dropCost(e)
		row[0] = before[0] + drop
		g.moves[i*width] = wantOnly
		for j := 1; j < width; j++ {
			cost, move := before[j-1]+g.pairCost(e, &g.w.have[j-1]), pairUp
			if c := before[j] + drop; c < cost {
				cost, move = c, wantOnly
			}
			if c := row[j-1] + costDifference; c < cost {
				cost, move = c, haveOnly
			}
			row[j], g.moves[i*width+j] = cost, move
		}
		before, row = row, before
	}
	g.last = before
}

// dropCost is what it costs that an elem has no item.
func (g *grid) dropCost(e *elem) int64 {
	if e.unit == nil {
		return costUnforeseen
	}
	if g.w.lack(e, g.after) != absent {
		return costHole
	}
	return costDifference
}

// lack says what it means that an elem has no item, where records stand as
// before it or as after: it is absent unless there is a hole in both places that
// has a reason.
func (w *window) lack(e *elem, after int64) outcome {
	before := w.hole(e.want + w.shift)
	if before == absent || w.hole(e.want+after) == absent || w.taken(e.want+w.shift) || w.taken(e.want+after) {
		return absent
	}
	return before
}

// taken reports whether an item of the window stands at an offset.
func (w *window) taken(offset int64) bool {
	j := w.position(offset)
	return j < len(w.have) && w.have[j].offset == offset
}

func (g *grid) pairCost(e *elem, i *item) int64 {
	cost := int64(0)
	switch {
	case !e.fits(i):
		cost = costDifference
	case !e.known() || e.note():
		cost = costUnknown
	}
	if stands := i.offset - e.want; stands != g.w.shift && stands != g.after {
		cost += costMoved
	}
	return cost
}

// trace returns the steps of the cheapest alignment up to exit, which is the
// end of the block or lies in its last row.
func (g *grid) trace(exit place) []step {
	width := g.block.have + 1
	var steps []step
	for i, j := exit.want, exit.have; i > 0 || j > 0; {
		kind := g.moves[i*width+j]
		if kind != haveOnly {
			i--
		}
		if kind != wantOnly {
			j--
		}
		steps = append(steps, step{kind, place{i, j}})
	}
	for i, j := 0, len(steps)-1; i < j; i, j = i+1, j-1 {
		steps[i], steps[j] = steps[j], steps[i]
	}
	return steps
}

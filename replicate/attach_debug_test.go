package replicate

import (
	"fmt"
	"os"
	"strconv"
	"testing"
)

func TestZDebug(t *testing.T) {
	seed, _ := strconv.ParseUint(os.Getenv("SEED"), 10, 64)
	values, _ := strconv.Atoi(os.Getenv("VALUES"))
	for _, c := range modelCases() {
		if c.name != os.Getenv("CASE") {
			continue
		}
		m := c.play(seed, values)
		fmt.Println("logStart", m.logStart, "targetStart", m.targetStart)
		for i, o := range m.source {
			fmt.Println("S", i, o.tile, o.hash%1000, "gone", o.gone, m.present(int64(i)))
		}
		for i, o := range m.target {
			fmt.Println("T", i, o.producer.id, o.sequence, o.hash%1000, "origin", o.origin, "second", o.second, "gone", o.gone)
		}
		b, at, err := m.attach()
		fmt.Printf("%+v %v\n", at, err)
		for _, e := range b.entries {
			fmt.Printf("%v %v %v %v %v\n", e.Tile, e.Source, e.Target, e.Gaps, e.Origin)
		}
		if err == nil {
			fmt.Println(m.agrees(b, at))
		}
	}
}

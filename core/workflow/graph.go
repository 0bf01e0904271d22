package workflow

import "strings"

// waits searches for cycles of steps, and for references to steps that come later. References to unknown steps were
// reported before and lead nowhere.
func (c *checker) waits() {
	steps := c.plan.Steps
	to := func(i int, id StepID, visit func(int)) {
		if j, known := c.at[id]; known && id != "" && j != i && id != steps[i].ID {
			visit(j)
		}
	}
	needs := func(i int, visit func(int)) {
		for _, id := range steps[i].Needs {
			to(i, id, visit)
		}
	}
	order, cycles := inOrder(len(steps), needs)
	for _, cycle := range cycles {
		c.fault(cycle[0], "needs", -1, "%s: each waits for the next; remove one need", c.cycleText(cycle))
	}
	g := dependence{rank: make([]int, len(steps)), dependants: make([][]int, len(steps)), cyclic: len(cycles) > 0}
	for n, i := range order {
		g.rank[i] = n
	}
	for i := range steps {
		needs(i, func(need int) { g.dependants[need] = append(g.dependants[need], i) })
	}
	leads := make([]bool, len(steps)) // its loop_back_to leads to a step that comes before it, or is beside it
	for i := range steps {
		to(i, steps[i].LoopBackTo, func(back int) {
			switch {
			case !g.reaches(i, back):
				leads[i] = true
			case !g.cyclic || !g.reaches(back, i): // otherwise both are in a cycle
				c.fault(i, "loop_back_to", -1, "%q comes after this step; name one before it, or beside it", steps[back].ID)
			}
		})
		if l := steps[i].Loop; l != nil {
			to(i, l.ItemsFromStep, func(from int) {
				if !g.reaches(from, i) {
					c.fault(i, "loop.items_from_step", -1, "%q need not be done before this step; add it to needs", l.ItemsFromStep)
				}
			})
			if l.ItemsFromStep == steps[i].ID && l.ItemsFromStep != "" {
				c.fault(i, "loop.items_from_step", -1, "names its own step; name one that it needs")
			}
		}
	}
	// A gate also waits for the step that it sent back, even if it does not need it.
	_, cycles = inOrder(len(steps), func(i int, visit func(int)) {
		needs(i, func(need int) {
			if g.rank[need] < g.rank[i] { // the others close a cycle that was reported
				visit(need)
			}
		})
		if leads[i] {
			to(i, steps[i].LoopBackTo, visit)
		}
	})
	for _, cycle := range cycles {
		c.fault(cycle[0], "loop_back_to", -1,
			"%s: once a gate has failed each would wait for the next; let one of the gates lead further back", c.cycleText(cycle))
	}
}

// circleShown is how many steps of a cycle are named.
const circleShown = problemsShown * 2

// cycleText lists the steps of a cycle, ending with the first one again.
func (c *checker) cycleText(cycle []int) string {
	names := make([]string, 0, circleShown+2)
	for n, i := range cycle {
		if n == circleShown {
			names = append(names, "…")
			break
		}
		names = append(names, string(c.plan.Steps[i].ID))
	}
	return strings.Join(append(names, string(c.plan.Steps[cycle[0]].ID)), " -> ")
}

// inOrder sorts the nodes of a graph topologically. It returns one cycle for each edge that closes one, and sorts without
// these edges. Of a long cycle it returns the beginning, and of very many the first ones. It uses its own stack, because a
// chain may be longer than a goroutine's stack allows.
func inOrder(n int, waits func(i int, visit func(int))) (order []int, cycles [][]int) {
	const (
		fresh = iota
		open
		done
	)
	type frame struct {
		node int
		next []int
	}
	mark, depth := make([]byte, n), make([]int, n)
	begin := func(i, at int) frame {
		mark[i], depth[i] = open, at
		f := frame{node: i}
		waits(i, func(j int) { f.next = append(f.next, j) })
		return f
	}
	for root := range n {
		if mark[root] != fresh {
			continue
		}
		stack := []frame{begin(root, 0)}
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if len(top.next) == 0 {
				mark[top.node] = done
				order = append(order, top.node)
				stack = stack[:len(stack)-1]
				continue
			}
			next := top.next[0]
			top.next = top.next[1:]
			switch mark[next] {
			case fresh:
				stack = append(stack, begin(next, len(stack)))
			case open:
				if len(cycles) > faultsMax {
					continue
				}
				var cycle []int
				for _, f := range stack[depth[next]:min(len(stack), depth[next]+circleShown+1)] {
					cycle = append(cycle, f.node)
				}
				cycles = append(cycles, cycle)
			}
		}
	}
	return order, cycles
}

// dependence is which steps come after which.
type dependence struct {
	rank       []int   // of each step in an order in which needs come first
	dependants [][]int //
	cyclic     bool    // there are cycles, so the order does not hold for all of them
	work       int     // steps that were visited
}

// cyclicWorkMax bounds the search in a plan with cycles, which is refused anyway: what it does not find is reported once
// the cycles are gone.
const cyclicWorkMax = 10_000_000

// reaches reports whether a step comes after another. Edges only lead to higher ranks, so the usual
// question is answered immediately.
func (g *dependence) reaches(from, to int) bool {
	if !g.cyclic && g.rank[from] >= g.rank[to] || from == to {
		return from == to
	}
	seen, todo := map[int]bool{from: true}, []int{from}
	for len(todo) > 0 {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, j := range g.dependants[i] {
			if j == to {
				return true
			}
			if g.work++; g.cyclic && g.work > cyclicWorkMax {
				return true
			}
			if (g.cyclic || g.rank[j] < g.rank[to]) && !seen[j] {
				seen[j] = true
				todo = append(todo, j)
			}
		}
	}
	return false
}

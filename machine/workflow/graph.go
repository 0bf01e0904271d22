package workflow

import "strings"

// waits searches for cycles of steps, and for references to steps that come later. All names must be
// valid.
func (c *checker) waits() {
	if !c.graph {
		return
	}
	steps := c.plan.Steps
	needs := func(i int, visit func(int)) {
		for _, id := range steps[i].Needs {
			visit(c.at[id])
		}
	}
	order, cycle := inOrder(len(steps), needs)
	if cycle != nil {
		c.fault(cycle[0], "needs", -1, "%s: each waits for the next; remove one need", c.circle(cycle))
		return
	}
	rank := make([]int, len(steps))
	for n, i := range order {
		rank[i] = n
	}
	dependants := make([][]int, len(steps))
	for i := range steps {
		needs(i, func(need int) { dependants[need] = append(dependants[need], i) })
	}
	wrong := false
	for i := range steps {
		if back := steps[i].LoopBackTo; back != "" && back != steps[i].ID && reaches(dependants, rank, i, c.at[back]) {
			c.fault(i, "loop_back_to", -1, "%q comes after this step; name one before it, or beside it", back)
			wrong = true
		}
		if l := steps[i].Loop; l != nil && l.ItemsFromStep != "" && !reaches(dependants, rank, c.at[l.ItemsFromStep], i) {
			c.fault(i, "loop.items_from_step", -1, "%q need not be done before this step; add it to needs", l.ItemsFromStep)
		}
	}
	if wrong {
		return
	}
	// A gate also waits for the step that it sent back, even if it does not need it.
	_, cycle = inOrder(len(steps), func(i int, visit func(int)) {
		needs(i, visit)
		if back := steps[i].LoopBackTo; back != "" && back != steps[i].ID {
			visit(c.at[back])
		}
	})
	if cycle != nil {
		c.fault(cycle[0], "loop_back_to", -1, "%s: once a gate has failed each would wait for the next; let one of the gates lead further back", c.circle(cycle))
	}
}

// circle lists the steps of a cycle, ending with the first one again.
func (c *checker) circle(cycle []int) string {
	names := make([]string, 0, problemsShown*2)
	for n, i := range cycle {
		if n == problemsShown*2 {
			names = append(names, "…")
			break
		}
		names = append(names, string(c.plan.Steps[i].ID))
	}
	return strings.Join(append(names, string(c.plan.Steps[cycle[0]].ID)), " -> ")
}

// inOrder sorts the nodes of a graph topologically, or returns one cycle. It uses its own stack,
// because a chain may be longer than a goroutine's stack allows.
func inOrder(n int, waits func(i int, visit func(int))) (order, cycle []int) {
	const (
		fresh = iota
		open
		done
	)
	type frame struct {
		node int
		next []int
	}
	mark := make([]byte, n)
	begin := func(i int) frame {
		mark[i] = open
		f := frame{node: i}
		waits(i, func(j int) { f.next = append(f.next, j) })
		return f
	}
	for root := range n {
		if mark[root] != fresh {
			continue
		}
		stack := []frame{begin(root)}
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
				stack = append(stack, begin(next))
			case open:
				for k := range stack {
					if stack[k].node == next || cycle != nil {
						cycle = append(cycle, stack[k].node)
					}
				}
				return nil, cycle
			}
		}
	}
	return order, nil
}

// reaches reports whether a step comes after another. Edges only lead to higher ranks, so the usual
// question is answered immediately.
func reaches(dependants [][]int, rank []int, from, to int) bool {
	if rank[from] >= rank[to] {
		return from == to
	}
	seen, todo := map[int]bool{from: true}, []int{from}
	for len(todo) > 0 {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, j := range dependants[i] {
			if j == to {
				return true
			}
			if rank[j] < rank[to] && !seen[j] {
				seen[j] = true
				todo = append(todo, j)
			}
		}
	}
	return false
}

package server

// some returns an empty list for a null one.
func some[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

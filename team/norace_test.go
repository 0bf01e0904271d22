//go:build !race

package team

const raced = false

//go:build !unix

package stress

func processUsage() Usage { return Usage{} }

// Package disk watches how much of the disk a sandbox takes. Few file systems can limit a
// folder, so the folders of a sandbox are measured, which is slow; and the free space
// of the disk, which is read at once, says when. Whoever can see the folders looks every [Every]:
//
//	watch := disk.Watch{Limit: 1 << 30, Used: measure, Free: func() (int64, error) { return disk.FreeSpace(folder) }}
//	if watch.Exceeded(time.Now()) {
//		// end what runs in the sandbox
//	}
package disk

package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// devices are in every view.
var devices = []string{"null", "zero", "full", "random", "urandom", "tty"}

// maskedFiles of /proc read as empty, and maskedFolders cannot be written: they concern the whole machine.
var (
	maskedFiles   = []string{"sysrq-trigger", "kcore", "keys", "key-users", "timer_list", "sched_debug", "latency_stats", "kmsg"}
	maskedFolders = []string{"sys", "irq", "bus", "fs", "asound", "acpi", "scsi"}
)

const (
	sharedMemoryMin = 1 << 30 // browsers and databases need this much
	holdMountFlags  = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	noLinks         = unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS
)

// mounter makes the mounts of one view, in the new namespace. It works with descriptors: what was looked at is what is mounted.
type mounter struct {
	view  View
	who   owner
	root  int   // the new root folder
	idmap int   // a user namespace that swaps root and the owner; -1: none is needed, or none can be made
	ours  []own // folders in which mount points may be made
	live  live  // sockets in places of the view
}

// own is a folder of the view in which mount points may be made, or a place of the machine in which they may not.
type own struct {
	path string
	is   bool
}

// apart keeps what is mounted from now on in this namespace, and gives it the numbers of its own processes: /proc has those of
// outside.
func (m *mounter) apart() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("keep mounts apart: %w", err)
	}
	if !m.view.Processes {
		return nil
	}
	tree, err := filesystem("proc", nil, holdMountFlags|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	if err := unix.MoveMount(tree, "", unix.AT_FDCWD, "/proc", unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	return nil
}

// mount makes all mounts, and leaves the old root folder.
func (m *mounter) mount() error {
	steps, err := m.steps()
	if err != nil {
		return err
	}
	if m.root, err = memory("0755", ""); err != nil {
		return err
	}
	// any folder can carry the new root until it is the root
	if err := unix.MoveMount(m.root, "", unix.AT_FDCWD, "/usr", unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount a new root folder: %w", err)
	}
	m.ours = []own{{"/", true}}
	for _, s := range steps {
		if err := m.put(s); err != nil {
			return fmt.Errorf("%s in the view: %w", s.path, err)
		}
	}
	if err := m.small(); err != nil {
		return err
	}
	m.cover()
	if err := unix.MountSetattr(m.root, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return fmt.Errorf("make the root folder read-only: %w", err)
	}
	if err := unix.Fchdir(m.root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("change the root folder: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the old root folder: %w", err)
	}
	return os.Chdir("/")
}

// step is one mount.
type step struct {
	path  string // in the view
	tree  int    // the detached mount; -1: a link to where
	where string
	own   bool // mount points may be made in it
	hides bool
}

// steps opens everything that the view has from outside, before the new root folder covers anything, from the outermost to the
// innermost.
func (m *mounter) steps() (all []step, err error) {
	add := func(s step, fault error) {
		if err == nil && fault != nil {
			err = fault
		}
		if fault == nil && (s.tree >= 0 || s.where != "" || s.hides) {
			all = append(all, s)
		}
	}
	for _, p := range systemFolders {
		if to, fault := os.Readlink(p); fault == nil {
			all = append(all, step{path: p, tree: -1, where: to})
			continue
		}
		add(m.bind(p, p, Read, true))
	}
	for _, p := range socketFolders {
		fd, missing := unix.Openat2(unix.AT_FDCWD, p,
			&unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
		if missing != nil {
			continue // or a link leads there, which is not in the view
		}
		unix.Close(fd)
		tree, fault := memory("0755", "4k")
		add(step{path: p, tree: tree, own: true}, fault)
	}
	add(m.bind("/proc", "/proc", Write, false))
	for path, size := range map[string]string{"/run": "", "/dev": "64k", "/dev/shm": sharedMemory()} {
		tree, fault := memory("0755", size)
		add(step{path: path, tree: tree, own: true}, fault)
	}
	for _, name := range devices {
		add(m.bind("/dev/"+name, "/dev/"+name, Write, true))
	}
	if at := terminal(); at != "" {
		add(m.bind(terminalAt, at, Write, true))
	}
	pts, fault := filesystem("devpts", map[string]string{"mode": "620", "ptmxmode": "666"}, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC)
	add(step{path: "/dev/pts", tree: pts}, fault)
	home := cmp.Or(m.view.HomeAt, "/home/agent")
	for at, from := range map[string]string{home: m.view.Home, "/tmp": m.view.Temp} {
		if from == "" {
			tree, fault := memory("1777", "")
			add(step{path: at, tree: tree, own: true}, fault)
			continue
		}
		s, fault := m.bind(at, from, Write, false)
		s.own = true
		add(s, fault)
	}
	if m.view.Session != "" {
		add(m.bind(SessionDir, m.view.Session, Read, false))
	}
	for _, p := range m.view.Sockets {
		add(m.bind(p, p, Write, true))
	}
	for _, p := range m.view.Places {
		add(m.place(p))
	}
	for _, p := range m.view.between() {
		add(m.place(p))
	}
	slices.SortStableFunc(all, func(a, b step) int { return cmp.Compare(a.path, b.path) })
	return slices.CompactFunc(all, func(a, b step) bool { return a.path == b.path && a.tree == b.tree && a.where == b.where && !a.hides }),
		err
}

// between returns the folders between a writable place and one inside it, as places: a mount point cannot be renamed, so that
// no other folder can come to stand where the inner place is. A rename or a second name across them fails with EXDEV.
func (v View) between() (all []Place) {
	at := map[string]Place{}
	for _, p := range v.Places {
		at[p.Path] = p
	}
	for _, p := range v.Places {
		var above []string
		for dir := path.Dir(p.Path); dir != "/"; dir = path.Dir(dir) {
			outer, is := at[dir]
			if !is {
				above = append(above, dir)
				continue
			}
			for _, mid := range above {
				if outer.Access == Write {
					at[mid] = Place{Path: mid, From: cmp.Or(outer.From, dir) + mid[len(dir):], Access: Write}
					all = append(all, at[mid])
				}
			}
			break
		}
	}
	return all
}

func (m *mounter) place(p Place) (step, error) {
	switch p.Access {
	case Hide:
		return step{path: p.Path, tree: -1, hides: true}, nil
	case Overlay:
		return m.overlay(p)
	}
	return m.bind(p.Path, cmp.Or(p.From, p.Path), p.Access, true)
}

// bind opens a folder, or one of the few files, of the machine for the view. A folder that is missing is left out if it may be.
func (m *mounter) bind(at, from string, access Access, mayMiss bool) (s step, err error) {
	s = step{path: at, tree: -1}
	fd, err := unix.Openat2(unix.AT_FDCWD, from, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	switch {
	case mayMiss && (errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EACCES)):
		return s, nil
	case errors.Is(err, unix.ELOOP):
		return s, fmt.Errorf("a symbolic link leads to %s; name the place itself", from)
	case err != nil:
		return s, fmt.Errorf("open %s: %w", from, err)
	}
	defer unix.Close(fd)
	if s.tree, err = unix.OpenTree(fd, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE); err != nil {
		return s, fmt.Errorf("take %s into the view: %w", from, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return s, err
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID}
	if st.Mode&unix.S_IFMT != unix.S_IFCHR {
		attr.Attr_set |= unix.MOUNT_ATTR_NODEV
	}
	if access == Read {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	if err := unix.MountSetattr(s.tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
		return s, fmt.Errorf("restrict the mount of %s: %w", from, err)
	}
	if m.idmap >= 0 && st.Uid == 0 && !slices.Contains(systemFolders, at) && at != "/proc" && !below(at, "/dev") {
		if err := m.own(s.tree); err != nil {
			return s, fmt.Errorf("give %s to the user %d of the session: %w", from, m.who.uid, err)
		}
	}
	return s, nil
}

// own shows what belongs to root as the owner's, and the other way round.
func (m *mounter) own(tree int) error {
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(m.idmap)}
	err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr)
	if err != nil { // what is mounted below may have no such map
		err = unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &attr)
	}
	return err
}

// overlay is a mount with a folder of the machine below, and the agent's own above. The kernel makes it of open folders.
func (m *mounter) overlay(p Place) (s step, err error) {
	s = step{path: p.Path, tree: -1}
	from := cmp.Or(p.From, p.Path)
	if _, err := os.Lstat(from); errors.Is(err, fs.ErrNotExist) {
		return m.bind(p.Path, p.Upper, Write, false)
	}
	for _, dir := range []string{p.Upper, p.Upper + ".work"} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return s, err
		}
	}
	options := map[string]string{"lowerdir": from, "upperdir": p.Upper, "workdir": p.Upper + ".work"}
	if m.view.Users {
		options["userxattr"] = ""
	}
	s.tree, err = filesystem("overlay", options, holdMountFlags)
	return s, err
}

// put mounts one step where it belongs.
func (m *mounter) put(s step) error {
	if s.where != "" {
		return m.link(s.path, s.where)
	}
	tree := s.tree
	if s.hides {
		var err error
		if tree, err = memory("0555", "4k"); err != nil {
			return err
		}
		if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
			return err
		}
	}
	defer unix.Close(tree)
	var st unix.Stat_t
	if err := unix.Fstat(tree, &st); err != nil {
		return err
	}
	at, err := m.point(s.path, st.Mode&unix.S_IFMT == unix.S_IFDIR)
	if err != nil {
		if s.hides && errors.Is(err, unix.ENOENT) {
			return nil
		}
		return err
	}
	defer unix.Close(at)
	if err := unix.MoveMount(tree, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount it: %w", err)
	}
	m.ours = append(m.ours, own{s.path, s.own})
	return nil
}

// mayMake reports whether mount points may be made in a folder of the view: in those that the session has for itself, never in
// one of the machine.
func (m *mounter) mayMake(dir string) bool {
	for i := len(m.ours) - 1; i >= 0; i-- {
		if o := m.ours[i]; o.path == "/" || below(dir, o.path) {
			return o.is
		}
	}
	return false
}

// point opens the place for a mount, and makes it where that is allowed. No link is followed.
func (m *mounter) point(p string, folder bool) (fd int, err error) {
	dir, err := unix.Dup(m.root)
	if err != nil {
		return -1, err
	}
	unix.CloseOnExec(dir)
	names := strings.Split(strings.Trim(p, "/"), "/")
	for i, name := range names {
		how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: noLinks | unix.RESOLVE_BENEATH}
		next, err := unix.Openat2(dir, name, &how)
		if errors.Is(err, unix.ENOENT) && m.mayMake("/"+path.Join(names[:i]...)) {
			if err = m.make(dir, name, folder || i < len(names)-1); err == nil {
				next, err = unix.Openat2(dir, name, &how)
			}
		}
		unix.Close(dir)
		if err != nil {
			return -1, fmt.Errorf("open /%s: %w", path.Join(names[:i+1]...), err)
		}
		dir = next
	}
	return dir, nil
}

func (m *mounter) make(dir int, name string, folder bool) error {
	if folder {
		return unix.Mkdirat(dir, name, 0o755)
	}
	fd, err := unix.Openat(dir, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

func (m *mounter) link(at, to string) error {
	dir, err := m.folder(path.Dir(at))
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	return unix.Symlinkat(to, dir, path.Base(at))
}

func (m *mounter) folder(p string) (fd int, err error) {
	if p == "/" {
		fd, err = unix.Dup(m.root)
		unix.CloseOnExec(fd)
		return fd, err
	}
	return m.point(p, true)
}

// small makes what is neither of the machine nor a place: links, folders in memory, and what is masked of /proc.
func (m *mounter) small() error {
	for at, to := range map[string]string{
		"/dev/ptmx": "pts/ptmx", "/dev/fd": "/proc/self/fd", "/dev/stdin": "/proc/self/fd/0", "/dev/stdout": "/proc/self/fd/1",
		"/dev/stderr": "/proc/self/fd/2", "/var/run": "/run", "/var/tmp": "/tmp", "/var/lock": "/run/lock",
	} {
		if err := m.link(at, to); err != nil {
			return fmt.Errorf("make the link %s: %w", at, err)
		}
	}
	for at, mode := range map[string]uint32{RuntimeDir: 0o700, "/run/lock": 0o1777, "/dev/shm": 0o1777} {
		fd, err := m.folder(at)
		if err != nil {
			return fmt.Errorf("make %s: %w", at, err)
		}
		err = unix.Fchownat(fd, "", m.who.uid, m.who.gid, unix.AT_EMPTY_PATH)
		name := fmt.Sprintf("/proc/self/fd/%d", fd)
		err = errors.Join(err, unix.Chmod(name, mode))
		unix.Close(fd)
		if err != nil {
			return fmt.Errorf("give %s to the program: %w", at, err)
		}
	}
	if err := m.mask(); err != nil {
		return err
	}
	return m.names()
}

// mask covers what of /proc concerns the whole machine.
func (m *mounter) mask() error {
	for _, name := range maskedFolders {
		from, err := unix.Openat(m.root, "proc/"+name, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
		if err != nil {
			continue // this kernel has none
		}
		err = m.over(from, from, unix.AT_RECURSIVE, unix.MOUNT_ATTR_RDONLY|holdMountFlags|unix.MOUNT_ATTR_NOEXEC)
		unix.Close(from)
		if err != nil {
			return fmt.Errorf("make /proc/%s read-only: %w", name, err)
		}
	}
	null, err := unix.Openat(m.root, "dev/null", unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer unix.Close(null)
	for _, name := range maskedFiles {
		at, err := unix.Openat(m.root, "proc/"+name, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
		if err != nil {
			continue
		}
		err = m.over(null, at, 0, 0)
		unix.Close(at)
		if err != nil {
			return fmt.Errorf("mask /proc/%s: %w", name, err)
		}
	}
	return nil
}

// over mounts one thing of the view over another.
func (m *mounter) over(from, at int, flags uint, attrs uint64) error {
	tree, err := unix.OpenTree(from, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|flags)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	if attrs != 0 {
		if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|flags, &unix.MountAttr{Attr_set: attrs}); err != nil {
			return err
		}
	}
	return unix.MoveMount(tree, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

const namesBytesMax = 64 << 10 // of a file with settings of name look-up; lists of hosts that block advertisements are larger

// names are the settings of name look-up. Where /etc has only a link into /run, whose other files are sockets, they are copied.
func (m *mounter) names() error {
	if m.view.Network != nil {
		return m.lookUp()
	}
	const file = "/etc/resolv.conf"
	if real, err := filepath.EvalSymlinks(file); err != nil || !strings.HasPrefix(real, "/run/") {
		return nil //nolint:nilerr // there is none, or it is where it is
	}
	return m.replace(file, func(text string) string { return text })
}

// memory is a file system in memory.
func memory(mode, size string) (int, error) {
	options := map[string]string{"mode": mode}
	if size != "" {
		options["size"] = size
	}
	return filesystem("tmpfs", options, holdMountFlags)
}

// filesystem makes a new file system, as a mount that is at no place yet.
func filesystem(kind string, options map[string]string, attrs int) (fd int, err error) {
	conf, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("a file system of kind %s: %w", kind, err)
	}
	defer unix.Close(conf)
	for key, value := range options {
		if value == "" {
			err = unix.FsconfigSetFlag(conf, key)
		} else {
			err = unix.FsconfigSetString(conf, key, value)
		}
		if err != nil {
			return -1, fmt.Errorf("set %s of a file system of kind %s: %w", key, kind, err)
		}
	}
	if err := unix.FsconfigCreate(conf); err != nil {
		return -1, fmt.Errorf("make a file system of kind %s: %w", kind, err)
	}
	if fd, err = unix.Fsmount(conf, unix.FSMOUNT_CLOEXEC, attrs); err != nil {
		err = fmt.Errorf("mount a file system of kind %s: %w", kind, err)
		if kind == "proc" { // parts of the one that is there are covered
			err = atStep(StepProc, err)
		}
		return -1, err
	}
	return fd, nil
}

// sharedMemory is the size of /dev/shm: the kernel's own default, which is half of the memory, or what browsers need.
func sharedMemory() string {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err == nil && uint64(info.Totalram)*uint64(info.Unit)/2 >= sharedMemoryMin {
		return ""
	}
	return fmt.Sprint(sharedMemoryMin)
}

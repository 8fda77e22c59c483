package syncer

// resumes has every second life, where it comes back to its disk, claim for maintenance before it has anything to push, and keep house with that.
func (l *life) resumes() {
	cp := l.disk.newest
	if cp == nil || l.activated || l.h.lives%2 != 0 {
		return
	}
	err := l.worker.Resume(l.ctx, cp.manifest)
	switch {
	case l.dead.Load():
	case err != nil:
		l.w.tell("%s does not claim for maintenance: %v", l.h.actor(), err)
		l.w.checker.upkept(l.w, l.h.actor(), err)
	default:
		l.w.tell("%s has claimed epoch %d for maintenance", l.h.actor(), l.worker.Status().Epoch)
		l.keepHouse()
	}
}

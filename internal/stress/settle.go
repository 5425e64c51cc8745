package stress

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Times of the end of a run.
const (
	// drainPatience is how long answers may be missing while nothing moves: TCP, which carries them, may be waiting
	// after a cut of two seconds.
	drainPatience = 4 * time.Second
	drainTime     = 30 * time.Second
	// tornPatience is the same if a side has canceled what it had queued.
	tornPatience = 200 * time.Millisecond
	settleTime   = 2 * drainTime

	// When somebody waits for the end, messages and the peer have less time.
	hurriedDrain  = 1500 * time.Millisecond
	hurriedSettle = 5 * time.Second
)

// hurry has the run end soon.
func (s *session) hurry() { s.hurryOnce.Do(func() { close(s.hurried) }) }

// interrupted is called when the caller wants the end.
func (s *session) interrupted() {
	s.hurry()
	if s.peer {
		_ = s.conn.Send(frame{Type: frameHurry}) // a peer that is gone shows elsewhere
	}
}

// within returns a context that is done after a time, or after another from when somebody waits for the end.
func (s *session) within(limit, hurried time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	go func() {
		select {
		case <-s.hurried:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(hurried):
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// errUnanswered is all that there is to tell a C peer that has lost messages or is stuck.
var errUnanswered = errors.New("the peer has answered nothing that is outstanding")

// end stops the run, settles the account with the peer, and closes everything.
func (s *session) end(why error) {
	s.run.Quiet()
	sum := &s.summary
	sum.Gap, sum.Recovery = s.run.Gap()
	if errors.Is(why, errDone) {
		why = nil
	}
	cancels := s.cfg.CancelSentTo && s.cancel()
	s.torn = s.torn || cancels
	drain, cancel := s.within(drainTime, hurriedDrain)
	defer cancel()
	// Who ends the run before its time still wants the account.
	settle := !errors.Is(why, ErrPeerGone) && !errors.Is(why, ErrPeerEnded) && !errors.Is(why, errAborted)
	settled := false
	if s.peer && settle {
		var err error
		if settled, err = s.settle(drain, why, cancels); err != nil && why == nil {
			why = err
		}
	} else if settle && s.active {
		n := s.run.Drain(drain, s.patience())
		if why == nil && n > 0 && drain.Err() == nil && !s.torn {
			why = fmt.Errorf("%w for %v", errUnanswered, drainPatience)
		}
	}
	s.run.Hush()
	if n := s.run.Excuse(s.left); n > 0 {
		s.note("%d RDMA operations failed because the peer had ended: they do not count", n)
	}
	if !settled {
		b, _ := s.run.Balance(nil)
		s.balance(&b)
	}
	s.conn.Close()
	s.news()
	if err := s.run.Close(); err != nil && why == nil {
		why = err
	}
	if errors.Is(why, errAborted) {
		why = nil
	}
	sum.Err = why
	s.tell(Event{Kind: End, Summary: sum, Transport: s.run.Transport()})
}

// balance enters into the summary what has become of all messages, once.
func (s *session) balance(b *Balance) {
	sum := &s.summary
	sum.Whole.Add(&b.Stats)
	sum.Lost, sum.Outstanding = b.Lost, b.Outstanding
	for _, o := range b.Outstanding {
		sum.Unanswered += o.Requests
	}
}

// cancel drops what the kernel has not delivered, and reports whether it could.
func (s *session) cancel() bool {
	queued, err := s.run.Queued()
	if err != nil {
		s.note("what is canceled cannot be counted: %v", err)
	}
	s.summary.Canceled = queued
	canceled, err := s.run.Cancel()
	if err != nil {
		s.note("--cancel-sent-to: %v", err)
	}
	for i := range canceled {
		s.tell(Event{Kind: Canceled, Canceled: &canceled[i]})
	}
	return err == nil
}

// patience is how long nothing may move before what is missing counts as lost.
func (s *session) patience() time.Duration {
	if s.torn {
		return tornPatience
	}
	return drainPatience
}

// settle agrees with the peer on what was lost. Until drain is done it waits for what is on its way.
// It reports whether it got as far as to enter the balance.
func (s *session) settle(drain context.Context, why error, canceled bool) (settled bool, err error) {
	ctx, cancel := s.within(settleTime, hurriedSettle)
	defer cancel()
	stop := frame{Type: frameStop, Canceled: canceled}
	if why != nil && !isPeerError(why) {
		stop.Error = Said(why.Error())
	}
	if err := s.conn.Send(stop); err != nil {
		return false, fmt.Errorf("%w: %w", ErrPeerGone, err)
	}
	if !s.stopped {
		f, err := s.expect(ctx, frameStop)
		if err != nil {
			return false, err
		}
		s.torn = s.torn || f.Canceled
	}
	s.run.Drain(drain, s.patience())
	// The peer may still send answers to what this side has asked.
	if err := s.conn.Send(frame{Type: frameReady}); err != nil {
		return false, fmt.Errorf("%w: %w", ErrPeerGone, err)
	}
	if _, err := s.expect(ctx, frameReady); err != nil {
		return false, err
	}
	s.run.Hush()
	if err := s.conn.Send(frame{Type: frameSent, Sent: s.run.Sent()}); err != nil {
		return false, fmt.Errorf("%w: %w", ErrPeerGone, err)
	}
	f, err := s.expect(ctx, frameSent)
	if err != nil {
		return false, err
	}
	err = s.arrived(drain, f.Sent)
	sum := &s.summary
	v := &Verdict{Stats: sum.Whole, Lost: sum.Lost, Undelivered: sum.Undelivered, Unanswered: sum.Unanswered}
	if err != nil {
		v.Error = Said(err.Error())
	}
	if serr := s.conn.Send(frame{Type: frameVerdict, Verdict: v}); serr != nil {
		return true, errors.Join(err, serr)
	}
	f, ferr := s.expect(ctx, frameVerdict)
	if ferr == nil {
		sum.Peer = f.Verdict
	}
	return true, errors.Join(err, ferr)
}

// arrived waits until all that the peer sent has arrived, or nothing comes any more, and enters the balance. What is
// missing is lost, except that the last messages of a flow are undelivered if they were canceled, or if it could not
// wait for them.
func (s *session) arrived(ctx context.Context, sent []uint32) error {
	last, since := uint64(0), time.Now()
	for {
		lost, err := s.run.Lost(sent)
		if lost != last {
			last, since = lost, time.Now()
		}
		if lost == 0 || err != nil || time.Since(since) > s.patience() || ctx.Err() != nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	b, err := s.run.Balance(sent)
	if err == nil && (s.torn || ctx.Err() != nil) {
		overtaken := min(b.Overtaken, b.Lost)
		s.summary.Undelivered = b.Lost - overtaken
		b.Lost = overtaken
	}
	s.balance(&b)
	return err
}

func isPeerError(err error) bool {
	var p *PeerError
	return errors.As(err, &p)
}

// expect waits for a frame of a type.
func (s *session) expect(ctx context.Context, typ string) (frame, error) {
	for {
		select {
		case f := <-s.frames:
			switch {
			case f.Type == typ && (typ != frameVerdict || f.Verdict != nil):
				return f, nil
			case f.Error != "":
				return frame{}, &PeerError{f.Error}
			}
		case err := <-s.gone:
			s.gone <- err
			// What it said before it went counts.
			for len(s.frames) > 0 {
				if f := <-s.frames; f.Type == typ && (typ != frameVerdict || f.Verdict != nil) {
					return f, nil
				}
			}
			return frame{}, fmt.Errorf("%w: %w", ErrPeerGone, err)
		case <-ctx.Done():
			return frame{}, fmt.Errorf("%w: it was asked for %q, which did not come", ErrPeerGone, typ)
		}
	}
}

package uitest

import (
	"context"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// Installable returns the reasons why Chromium does not install the page: faults of its manifest,
// and all others.
func Installable(p *Page) (against []string) {
	p.t.Helper()
	p.do("ask whether the page can be installed", func(ctx context.Context, t *chromedp.Target) (v chromedp.Void, err error) {
		manifest, err := cdp.Call(ctx, t, page.GetAppManifest, page.GetAppManifestParams{})
		if err != nil {
			return v, err
		}
		if manifest.URL == "" {
			against = append(against, "the page names no manifest")
		}
		for _, e := range manifest.Errors {
			against = append(against, e.Message)
		}
		all, err := cdp.Call(ctx, t, page.GetInstallabilityErrors, cdp.Empty{})
		for _, e := range all.InstallabilityErrors {
			if e.ErrorID == "in-incognito" { // the tab of a test is
				continue
			}
			against = append(against, e.ErrorID)
		}
		return v, err
	})
	return against
}

package workspace

import (
	"fmt"
	"slices"

	"github.com/toryo-dev/toryo/internal/task"
)

// phrase is something to say in both languages, with places to fill in as in fmt.
type phrase struct{ en, ja string }

// What is said of a repository or a workspace.
var (
	workGone = phrase{
		"The work in progress of the earlier run is gone; the files are those that the branch has.",
		"以前の実行の作業途中の状態が失われたため、ブランチにあるファイルから再開しました。",
	}
	nothingShared = phrase{
		"The branch and its base have no common past; differences are counted from the base as it is now.",
		"ブランチとベースに共通の履歴がないため、現在のベースとの差分で比較します。",
	}
	pointersOnly = phrase{
		"Files that the repository keeps in Git LFS are here as pointers, without their content.",
		"Git LFS で管理されているファイルは、内容を取得せずポインタのまま扱います。",
	}
	modulesLeft = phrase{
		"Submodules are not fetched and are left as they are: %s.",
		"サブモジュールは取得せず、そのままにします: %s。",
	}
	reservedName = phrase{
		"Left out, because git keeps the name for itself: %s.",
		"git が予約している名前のため、対象から除きました: %s。",
	}
	innerRepository = phrase{
		"A repository inside of the workspace is taken as plain files: %s.",
		"作業フォルダ内のリポジトリを通常のファイルとして扱います: %s。",
	}
	noFile = phrase{
		"Left out, because it is neither a file nor a link: %s.",
		"ファイルでもリンクでもないため、対象から除きました: %s。",
	}
	unreadable = phrase{
		"Left as it was, because it cannot be read: %s.",
		"読み取れないため、変更前のままにしました: %s。",
	}
	tooLong = phrase{
		"Not read, because it has more than %d MB: %s.",
		"%d MB を超えるため、読み取りませんでした: %s。",
	}
	overLimit = phrase{
		"Left out of the saved work, because they have more than %d MB: %s.",
		"%d MB を超えるため、保存から除きました: %s。",
	}
)

// remark notes something once.
func (w *Workspace) remark(what phrase, args ...any) {
	form := what.en
	if w.options.Language == task.Japanese {
		form = what.ja
	}
	text := fmt.Sprintf(form, args...)
	if !slices.Contains(w.remarks, text) && len(w.remarks) < maxRemarks {
		w.remarks = append(w.remarks, text)
	}
}

// maxRemarks is how much is said at most.
const maxRemarks = 20

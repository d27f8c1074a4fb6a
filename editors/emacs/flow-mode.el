;;; flow-mode.el --- Editing flows, with their language server  -*- lexical-binding: t; -*-

;; Version: 0.1.0
;; Package-Requires: ((emacs "28.1") (eglot "1.9"))
;; Keywords: languages

;;; Commentary:

;; A major mode for files ending in .flow: words, literals and comments in colour, lines indented by
;; their brackets.  What names mean, Eglot asks `qoqi lsp':
;;
;;     (require 'flow-mode)
;;     (add-hook 'flow-mode-hook #'eglot-ensure)
;;
;; Another command: (setq flow-server-command '("uv" "run" "qoqi" "lsp"))

;;; Code:

(require 'eglot)
(require 'project)

(defgroup flow nil "Editing flows." :group 'languages)

(defcustom flow-server-command '("qoqi" "lsp")
  "The command that starts the language server."
  :type '(repeat string))

(defcustom flow-indent 4 "How far a block is indented." :type 'natnum)

(defvar flow-mode-syntax-table
  (let ((table (make-syntax-table)))
    (modify-syntax-entry ?/ ". 12" table)
    (modify-syntax-entry ?\n ">" table)
    (modify-syntax-entry ?\" "\"" table)
    (modify-syntax-entry ?\\ "\\" table)
    (modify-syntax-entry ?_ "_" table)
    table))

(defconst flow-keywords
  '("pub" "import" "const" "struct" "enum" "fn" "let" "var" "if" "else" "while" "for" "in" "not"
    "match" "case" "wait" "return" "break" "continue" "defer" "extern" "flow" "step" "steps"
    "channel" "view" "run" "migrate" "test" "stage" "become" "given" "native"))

(defconst flow-clauses
  '("within" "tries" "forever" "backoff" "to" "on" "limit" "per" "beat" "undo" "capacity" "answers"
    "inside" "keep" "after" "at" "when" "then" "fails" "never" "runs" "as"))

(defvar flow-font-lock-keywords
  `((,(regexp-opt flow-keywords 'symbols) . font-lock-keyword-face)
    (,(regexp-opt flow-clauses 'symbols) . font-lock-builtin-face)
    (,(regexp-opt '("true" "false") 'symbols) . font-lock-constant-face)
    ("\\_<[A-Z][A-Za-z0-9_]*\\_>" . font-lock-type-face)
    ("\\_<\\(?:fn\\|step\\|view\\|channel\\|migrate\\)\\s-+\\([a-z_][A-Za-z0-9_]*\\)"
     1 font-lock-function-name-face)
    ("@[0-9]\\{4\\}-[0-9][0-9]-[0-9][0-9]\\(?:T[0-9:]+\\(?:Z\\|[+-][0-9:]+\\)?\\)?"
     . font-lock-constant-face)
    ("\\_<[0-9][0-9_]*\\(?:\\.[0-9]+\\|\\(?:ms\\|[smhdw]\\)\\)*\\_>" . font-lock-constant-face)))

(defun flow-indent-line ()
  "Indent a line by the brackets open before it."
  (interactive)
  (let ((place (- (point-max) (point))))
    (save-excursion
      (beginning-of-line)
      (let* ((depth (car (syntax-ppss)))
             (closes (looking-at-p "[ \t]*[])}]"))
             (column (* flow-indent (max 0 (if closes (1- depth) depth)))))
        (unless (nth 3 (syntax-ppss))
          (indent-line-to column))))
    (goto-char (max (- (point-max) place) (save-excursion (back-to-indentation) (point))))))

;;;###autoload
(define-derived-mode flow-mode prog-mode "Flow"
  "Major mode for flows."
  (setq-local comment-start "// ")
  (setq-local comment-start-skip "//+[/!]?[ \t]*")
  (setq-local indent-tabs-mode nil)
  (setq-local indent-line-function #'flow-indent-line)
  (setq-local font-lock-defaults '(flow-font-lock-keywords)))

;;;###autoload
(add-to-list 'auto-mode-alist '("\\.flow\\'" . flow-mode))

(defun flow-project (folder)
  "The package around FOLDER, as a project."
  (let ((root (locate-dominating-file folder "flow.toml")))
    (and root (cons 'flow root))))

(cl-defmethod project-root ((project (head flow)))
  "The folder of a flow PROJECT."
  (cdr project))

(add-hook 'project-find-functions #'flow-project)
(add-to-list 'eglot-server-programs '(flow-mode . (lambda (&rest _) flow-server-command)))

(provide 'flow-mode)
;;; flow-mode.el ends here

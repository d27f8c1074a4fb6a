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
;; C-c C-t runs the tests of a file, C-c C-c the one the cursor is in; both save the file first, and
;; from what failed RET or M-g n leads to its line.
;;
;; Another command: (setq flow-command '("uv" "run" "qoqi"))

;;; Code:

(require 'ansi-color)
(require 'compile)
(require 'eglot)
(require 'project)

(defgroup flow nil "Editing flows." :group 'languages)

(defcustom flow-command '("qoqi")
  "The command qoqi, with what has to stand before it."
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

(defconst flow-test-regexp "^test[ \t]+\"\\(\\(?:[^\"\\\n]\\|\\\\.\\)*\\)\""
  "Where a test begins, with its title.")

(defconst flow-place-regexp
  "^ +\\(?:--> \\)?\\([^ \n]+\\.flow\\):\\([0-9]+\\)\\(?::\\([0-9]+\\)\\)?$"
  "How qoqi names a place: below what failed, and behind the arrow of a diagnostic.")

(define-compilation-mode flow-test-mode "Flow tests"
  "What tests of flows said."
  (setq-local compilation-error-regexp-alist `((,flow-place-regexp 1 2 3)))
  (add-hook 'compilation-filter-hook #'ansi-color-compilation-filter nil t))

(defun flow--test (&rest options)
  "Run the tests of the file of this buffer with OPTIONS."
  (unless buffer-file-name (user-error "Tests are run from a file"))
  (when (buffer-modified-p) (save-buffer))
  (let* ((default-directory (or (locate-dominating-file buffer-file-name "flow.toml")
                                default-directory))
         (file (file-relative-name buffer-file-name)))
    (compilation-start
     (mapconcat #'shell-quote-argument `(,@flow-command "test" ,file "-v" ,@options) " ")
     #'flow-test-mode)))

(defun flow-test-file ()
  "Run the tests of this file."
  (interactive)
  (flow--test))

(defun flow-test-at-point ()
  "Run the test the cursor is in: the last one that begins before the end of its line."
  (interactive)
  (let ((title (save-excursion
                 (end-of-line)
                 (and (re-search-backward flow-test-regexp nil t)
                      (replace-regexp-in-string "\\\\\\(.\\)" "\\1" (match-string 1))))))
    (unless title (user-error "No test begins above"))
    (flow--test "-k" title)))

(defvar flow-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-c C-t") #'flow-test-file)
    (define-key map (kbd "C-c C-c") #'flow-test-at-point)
    map))

;;;###autoload
(define-derived-mode flow-mode prog-mode "Flow"
  "Major mode for flows.

\\{flow-mode-map}"
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
(add-to-list 'eglot-server-programs '(flow-mode . (lambda (&rest _) `(,@flow-command "lsp"))))

(provide 'flow-mode)
;;; flow-mode.el ends here

import QtQuick
import QtQuick.Controls.Basic
import QtQuick.Layouts

ApplicationWindow {
    id: root
    objectName: "root"
    width: 1180
    height: 760
    minimumWidth: 480
    minimumHeight: 360
    title: (app.pending > 0 ? "(" + app.pending + ") " : "") + (app.shownName !== "" ? app.shownName + " – " : "") + "interactive-terminal"
    color: look.c.ground
    font.pixelSize: 13

    function go(page) { app.page = page }

    Shortcut { sequence: "Ctrl+1"; onActivated: root.go("requests") }
    Shortcut { sequence: "Ctrl+2"; onActivated: root.go("terminal") }
    Shortcut { sequence: "Ctrl+3"; onActivated: root.go("history") }
    Shortcut { sequence: "Ctrl+4"; onActivated: root.go("settings") }
    Shortcut { sequence: "Ctrl+5"; onActivated: root.go("inbox") }
    Shortcut { sequences: ["Ctrl+PgDown", "Ctrl+Tab"]; onActivated: app.step(1) }
    Shortcut { sequences: ["Ctrl+PgUp", "Ctrl+Shift+Tab"]; onActivated: app.step(-1) }
    Shortcut { sequence: "Ctrl+Shift+N"; onActivated: app.openTerminal() }

    RowLayout {
        anchors.fill: parent
        spacing: 0

        Sidebar {
            Layout.fillHeight: true
            Layout.preferredWidth: root.width < 800 ? 164 : 248
        }
        Rectangle { Layout.fillHeight: true; Layout.preferredWidth: 1; color: look.c.edge }
        ColumnLayout {
            Layout.fillWidth: true
            Layout.fillHeight: true
            spacing: 0

            Rectangle {
                objectName: "warning"
                visible: app.warning !== ""
                Layout.fillWidth: true
                Layout.preferredHeight: warningText.implicitHeight + 16
                color: look.c.danger
                Text {
                    id: warningText
                    anchors { fill: parent; margins: 8 }
                    text: app.warning
                    color: look.c.on_accent
                    wrapMode: Text.Wrap
                    font.bold: true
                }
            }
            // Whatever is in front, a request that waits cannot be overlooked.
            Rectangle {
                objectName: "waitingBar"
                visible: app.pending > 0 && app.page !== "requests"
                Layout.fillWidth: true
                Layout.preferredHeight: 36
                color: look.c.attention
                Accessible.role: Accessible.AlertMessage
                Accessible.name: waitingText.text
                RowLayout {
                    anchors { fill: parent; leftMargin: 12; rightMargin: 8 }
                    spacing: 8
                    Text { id: waitingText; text: app.pending + (app.pending === 1 ? " request waits: " : " requests wait: ") + app.waiting; textFormat: Text.PlainText; color: look.c.on_accent; font.bold: true; elide: Text.ElideRight; Layout.fillWidth: true }
                    PlainButton { objectName: "lookAtRequests"; text: "Look"; tip: "Ctrl+1"; onClicked: root.go("requests") }
                }
            }
            StackLayout {
                Layout.fillWidth: true
                Layout.fillHeight: true
                currentIndex: ["requests", "terminal", "history", "settings", "inbox"].indexOf(app.page)
                RequestPage { }
                TerminalPage { }
                HistoryPage { onDerived: rule => { root.go("settings"); settings.derive(rule) } }
                SettingsPage { id: settings }
                InboxPage { }
            }
        }
    }

    Rectangle {
        id: notice
        objectName: "notice"
        property string text: ""
        property bool bad: false
        visible: text !== ""
        anchors { right: parent.right; bottom: parent.bottom; margins: 16 }
        width: Math.min(440, noticeText.implicitWidth + 32)
        height: noticeText.implicitHeight + 20
        radius: 6
        color: look.c.raised
        border.color: bad ? look.c.danger : look.c.accent
        Accessible.role: Accessible.AlertMessage
        Accessible.name: text
        Text {
            id: noticeText
            anchors { fill: parent; margins: 10 }
            text: notice.text
            textFormat: Text.PlainText
            wrapMode: Text.Wrap
            color: look.c.text
        }
        Timer { id: noticeTimer; interval: 6000; onTriggered: notice.text = "" }
        MouseArea { anchors.fill: parent; onClicked: notice.text = "" }
    }
    Connections {
        target: app
        function onNoticed(text, bad) {
            notice.text = text
            notice.bad = bad
            noticeTimer.restart()
        }
    }
}
